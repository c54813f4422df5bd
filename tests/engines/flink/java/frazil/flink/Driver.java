package frazil.flink;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/**
 * Flink as a process that a test drives: a cluster inside, and one door on the loopback address. A request is a POST
 * with a JSON document, {"do": what, ...}; the answer is {"answer": value} or {"error": text}.
 */
public final class Driver {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Cluster cluster;
  private final Jobs jobs = new Jobs();
  private Session session;

  private Driver(Cluster cluster) {
    this.cluster = cluster;
  }

  /** Arguments: the port to listen on, the folder of checkpoints and savepoints. */
  public static void main(String[] arguments) throws Exception {
    int port = Integer.parseInt(arguments[0]);
    Driver driver = new Driver(Cluster.start(Path.of(arguments[1])));
    InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
    HttpServer server = HttpServer.create(address, 0); // answers one request after the other
    server.createContext("/", driver::handle);
    server.start();
  }

  private void handle(HttpExchange exchange) throws IOException {
    byte[] answer = JSON.writeValueAsBytes(answer(JSON.readTree(exchange.getRequestBody())));
    exchange.sendResponseHeaders(200, answer.length);
    try (OutputStream body = exchange.getResponseBody()) {
      body.write(answer);
    }
  }

  private Map<String, Object> answer(JsonNode request) {
    Map<String, Object> answer = new LinkedHashMap<>();
    try {
      answer.put("answer", perform(request));
    } catch (Exception failure) {
      failure.printStackTrace();
      answer.put("error", causes(failure));
    }
    return answer;
  }

  private Object perform(JsonNode request) throws Exception {
    String action = request.path("do").asText();
    switch (action) {
      case "session":
        session = cluster.session(request.path("mode").asText(), settings(request));
        return null;
      case "run":
        session.run(request.path("sql").asText());
        return null;
      case "query":
        return session.query(request.path("sql").asText());
      case "start":
        return jobs.add(session.start(request.path("sql").asText()));
      case "wait":
        jobs.await(request.path("job").asText());
        return null;
      case "state":
        return jobs.state(request.path("job").asText());
      case "cancel-all":
        jobs.cancelAll();
        return null;
      case "stop":
        return jobs.stopWithSavepoint(request.path("job").asText());
      case "fail-at":
        FailsOnce.at(request.path("row").asLong());
        return null;
      default:
        throw new IllegalArgumentException("no such request: " + request);
    }
  }

  private static Map<String, String> settings(JsonNode request) {
    Map<String, String> settings = new LinkedHashMap<>();
    JsonNode told = request.path("settings");
    told.fieldNames().forEachRemaining(key -> settings.put(key, told.get(key).asText()));
    return settings;
  }

  private static String causes(Throwable failure) {
    StringBuilder told = new StringBuilder(failure.toString());
    for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
      told.append("; caused by ").append(cause);
    }
    return told.toString();
  }
}
