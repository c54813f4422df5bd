package frazil.flink;

import java.net.URI;
import java.nio.file.Path;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;

/** A Flink cluster in this process, which outlives the jobs that run on it. */
final class Cluster {
  private static final int SLOTS = 8;

  private final Configuration configuration;

  private Cluster(Configuration configuration) {
    this.configuration = configuration;
  }

  static Cluster start(Path state) throws Exception {
    Configuration configuration = configuration(state.toUri().toString());
    MiniClusterConfiguration small =
        new MiniClusterConfiguration.Builder()
            .setConfiguration(configuration)
            .setNumTaskManagers(1)
            .setNumSlotsPerTaskManager(SLOTS)
            .build();
    MiniCluster cluster = new MiniCluster(small);
    cluster.start();
    return new Cluster(remote(configuration, cluster.getRestAddress().get()));
  }

  Session session(String mode, Map<String, String> settings) {
    return Session.open(configuration, mode, settings);
  }

  private static Configuration configuration(String state) {
    Configuration configuration = new Configuration();
    Map.ofEntries(
            Map.entry("parallelism.default", "2"),
            Map.entry("rest.port", "0"),
            Map.entry("rest.bind-address", "127.0.0.1"),
            Map.entry("taskmanager.memory.network.min", "64mb"),
            Map.entry("taskmanager.memory.network.max", "64mb"),
            Map.entry("classloader.check-leaked-classloader", "false"),
            Map.entry("execution.checkpointing.interval", "1s"),
            Map.entry("execution.checkpointing.dir", state),
            Map.entry("execution.checkpointing.savepoint-dir", state),
            Map.entry("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION"),
            Map.entry("restart-strategy.type", "fixed-delay"),
            Map.entry("restart-strategy.fixed-delay.attempts", "3"),
            Map.entry("restart-strategy.fixed-delay.delay", "500ms"))
        .forEach(configuration::setString);
    return configuration;
  }

  /** Sends jobs to the running cluster; without it every INSERT would start and end one of its own. */
  private static Configuration remote(Configuration configuration, URI address) {
    Configuration remote = new Configuration(configuration);
    remote.setString("execution.target", "remote");
    remote.setString("rest.address", address.getHost());
    remote.setString("rest.port", String.valueOf(address.getPort()));
    return remote;
  }
}
