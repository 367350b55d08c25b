import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.hadoop.hive.common.ndv.hll.HyperLogLog;
import org.apache.hadoop.hive.common.ndv.hll.HyperLogLogUtils;
import org.apache.hadoop.hive.common.type.HiveDecimal;

/**
 * Makes, reads and merges sketches with Hive's own class, of the size that its column statistics use.
 *
 * <p>Each input line is a kind and its values, separated by blanks: {@code long}, {@code double}, {@code decimal}, {@code
 * text} (each in Base64), or {@code merge} with serialized sketches in Base64. Each output line is the estimate and the
 * serialized sketch.
 */
public final class HiveSketches {
  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] parts = line.split(" ");
      HyperLogLog sketch = HyperLogLog.builder().setSizeOptimized().build();
      for (int index = 1; index < parts.length; index++) {
        add(sketch, parts[0], parts[index]);
      }
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      HyperLogLogUtils.serializeHLL(bytes, sketch);
      System.out.println(
          sketch.estimateNumDistinctValues() + " " + Base64.getEncoder().encodeToString(bytes.toByteArray()));
    }
  }

  private static void add(HyperLogLog sketch, String kind, String value) throws Exception {
    switch (kind) {
      case "long":
        sketch.addToEstimator(Long.parseLong(value));
        break;
      case "double":
        sketch.addToEstimator(Double.parseDouble(value));
        break;
      case "decimal":
        sketch.addToEstimator(HiveDecimal.create(value));
        break;
      case "text":
        sketch.addToEstimator(new String(Base64.getDecoder().decode(value), StandardCharsets.UTF_8));
        break;
      case "merge":
        byte[] data = Base64.getDecoder().decode(value);
        sketch.merge(HyperLogLogUtils.deserializeHLL(new ByteArrayInputStream(data)));
        break;
      default:
        throw new IllegalArgumentException(kind);
    }
  }
}
