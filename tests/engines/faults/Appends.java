import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.rest.RESTCatalog;

/**
 * Appends to a table from many threads at once: URI TABLE FOLDER FIRST THREADS APPENDS. Each append is a row with an id
 * of its own, counted from FIRST. The threads begin when FOLDER/go is there.
 */
public final class Appends {
  private static final long POLL_MS = 10;

  public static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[2]);
    long first = Long.parseLong(arguments[3]);
    int threads = Integer.parseInt(arguments[4]);
    int appends = Integer.parseInt(arguments[5]);
    RESTCatalog catalog = new RESTCatalog();
    catalog.setConf(new Configuration());
    catalog.initialize("frazil", Map.of("uri", arguments[0], "warehouse", "default"));
    List<Table> tables = new ArrayList<>();
    for (int number = 0; number < threads; number++) {
      tables.add(catalog.loadTable(TableIdentifier.parse(arguments[1])));
    }
    Files.createFile(folder.resolve("ready-java"));
    while (!Files.exists(folder.resolve("go"))) {
      Thread.sleep(POLL_MS);
    }
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    List<Future<?>> writers = new ArrayList<>();
    for (int number = 0; number < threads; number++) {
      Table table = tables.get(number);
      long own = first + (long) number * appends;
      writers.add(pool.submit(() -> write(table, own, appends)));
    }
    for (Future<?> writer : writers) {
      writer.get();
    }
    pool.shutdown();
    catalog.close();
  }

  private static Void write(Table table, long first, int appends) throws Exception {
    for (long id = first; id < first + appends; id++) {
      table.newAppend().appendFile(file(table, id)).commit();
    }
    return null;
  }

  private static DataFile file(Table table, long id) throws Exception {
    Record record = GenericRecord.create(table.schema()).copy(Map.of("id", id, "place", "java"));
    String location = table.locationProvider().newDataLocation(UUID.randomUUID() + ".parquet");
    OutputFile place = table.io().newOutputFile(location);
    DataWriter<Record> writer =
        Parquet.writeData(place)
            .forTable(table)
            .createWriterFunc(GenericParquetWriter::create)
            .build();
    try (writer) {
      writer.write(record);
    }
    return writer.toDataFile();
  }
}
