package frazil.flink;

import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.table.functions.ScalarFunction;

/** The SQL function fails_once(x): x, but for one exception at the row that was asked for. */
public final class FailsOnce extends ScalarFunction {
  // Shared by the tasks of all jobs: the cluster is in this process.
  private static final AtomicLong ROWS_LEFT = new AtomicLong();

  static void at(long row) {
    ROWS_LEFT.set(row);
  }

  public Long eval(Long value) {
    if (ROWS_LEFT.getAndDecrement() == 1) {
      throw new IllegalStateException("injected failure");
    }
    return value;
  }

  @Override
  public boolean isDeterministic() {
    return false; // or the planner would be free to call it once for many rows
  }
}
