import static com.google.common.collect.Maps.fromProperties;

import io.airlift.configuration.secrets.SecretsResolver;
import io.airlift.configuration.secrets.env.EnvironmentVariableSecretProvider;
import io.trino.plugin.iceberg.IcebergPlugin;
import io.trino.testing.DistributedQueryRunner;
import io.trino.testing.TestingSession;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/**
 * Trino in one process: a coordinator that is its own worker, listening on loopback. Catalogs are read as a Trino
 * installation reads them: NAME.properties makes the catalog NAME, and ${ENV:VARIABLE} in a value is replaced.
 *
 * <pre>Server PORT CATALOG_FILE...</pre>
 */
class Server {
    private static final String CONNECTOR = "connector.name";

    public static void main(String... arguments) {
        try {
            serve(arguments[0], List.of(arguments).subList(1, arguments.length));
        } catch (Exception failure) {
            failure.printStackTrace();
            // Threads that were started already would keep the process.
            System.exit(1);
        }
    }

    private static void serve(String port, List<String> catalogs) throws Exception {
        var queries = DistributedQueryRunner.builder(TestingSession.testSession())
                .setWorkerCount(0)
                .addCoordinatorProperty("http-server.http.port", port)
                .build();
        queries.installPlugin(new IcebergPlugin());
        for (var file : catalogs) {
            addCatalog(queries, Path.of(file));
        }
        System.out.println("READY " + queries.getCoordinator().getBaseUrl());
    }

    private static void addCatalog(DistributedQueryRunner queries, Path file) throws IOException {
        var settings = new HashMap<>(resolved(read(file)));
        var name = file.getFileName().toString().replaceFirst("\\.properties$", "");
        queries.createCatalog(name, settings.remove(CONNECTOR), settings);
    }

    private static Properties read(Path file) throws IOException {
        var properties = new Properties();
        try (var reader = Files.newBufferedReader(file)) {
            properties.load(reader);
        }
        return properties;
    }

    private static Map<String, String> resolved(Properties properties) {
        return new SecretsResolver(Map.of("env", new EnvironmentVariableSecretProvider()))
                .getResolvedConfiguration(fromProperties(properties));
    }
}
