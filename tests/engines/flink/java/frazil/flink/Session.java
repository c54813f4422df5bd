package frazil.flink;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/** A table environment in batch or in streaming mode; catalogs and settings of earlier ones are unknown to it. */
final class Session {
  private final StreamTableEnvironment environment;

  private Session(StreamTableEnvironment environment) {
    this.environment = environment;
  }

  static Session open(Configuration configuration, String mode, Map<String, String> settings) {
    Configuration own = new Configuration(configuration);
    settings.forEach(own::setString);
    EnvironmentSettings.Builder builder = EnvironmentSettings.newInstance().withConfiguration(own);
    EnvironmentSettings chosen = (mode.equals("batch") ? builder.inBatchMode() : builder.inStreamingMode()).build();
    StreamTableEnvironment environment =
        StreamTableEnvironment.create(StreamExecutionEnvironment.getExecutionEnvironment(own), chosen);
    environment.createTemporarySystemFunction("fails_once", FailsOnce.class);
    return new Session(environment);
  }

  /** Runs a statement to its end, the job that it starts included. */
  void run(String sql) throws Exception {
    TableResult result = environment.executeSql(sql);
    if (result.getJobClient().isPresent()) {
      result.getJobClient().get().getJobExecutionResult().get();
    }
  }

  /** Starts the job of an INSERT and leaves it running. */
  JobClient start(String sql) {
    return environment.executeSql(sql).getJobClient().orElseThrow();
  }

  List<List<Object>> query(String sql) throws Exception {
    List<List<Object>> rows = new ArrayList<>();
    try (CloseableIterator<Row> found = environment.executeSql(sql).collect()) {
      while (found.hasNext()) {
        rows.add(fields(found.next()));
      }
    }
    return rows;
  }

  private static List<Object> fields(Row row) {
    List<Object> fields = new ArrayList<>();
    for (int position = 0; position < row.getArity(); position++) {
      fields.add(plain(row.getField(position)));
    }
    return fields;
  }

  /** A value as JSON has it; what JSON does not have becomes text. */
  private static Object plain(Object value) {
    if (value == null || value instanceof Boolean || value instanceof Number) {
      return value;
    }
    if (value instanceof Row) {
      return fields((Row) value);
    }
    if (value instanceof Map) {
      Map<String, Object> entries = new LinkedHashMap<>();
      ((Map<?, ?>) value).forEach((key, held) -> entries.put(String.valueOf(key), plain(held)));
      return entries;
    }
    return value.toString();
  }
}
