package frazil.flink;

import java.util.HashMap;
import java.util.Map;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;

/** The jobs that were started and left running, by their ids. */
final class Jobs {
  private static final long POLL_MS = 100;

  private final Map<String, JobClient> running = new HashMap<>();

  String add(JobClient job) {
    String id = job.getJobID().toString();
    running.put(id, job);
    return id;
  }

  void await(String id) throws Exception {
    running.get(id).getJobExecutionResult().get();
  }

  /** What Flink calls it: RUNNING, RESTARTING, FINISHED, FAILED and so on. */
  String state(String id) throws Exception {
    return running.get(id).getJobStatus().get().name();
  }

  /** Cancels what still runs, as a test that failed leaves it. */
  void cancelAll() throws Exception {
    for (JobClient job : running.values()) {
      if (!job.getJobStatus().get().isTerminalState()) {
        job.cancel().get();
      }
      while (!job.getJobStatus().get().isTerminalState()) {
        Thread.sleep(POLL_MS);
      }
    }
    running.clear();
  }

  /** The savepoint's location. */
  String stopWithSavepoint(String id) throws Exception {
    return running.get(id).stopWithSavepoint(false, null, SavepointFormatType.CANONICAL).get();
  }
}
