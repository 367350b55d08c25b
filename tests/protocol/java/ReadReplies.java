import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import org.apache.thrift.TBase;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TCompactProtocol;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.transport.TMemoryInputTransport;

/**
 * Reads encoded result structs with the classes of one Hive release, as its client would.
 *
 * <p>Each input line is {@code method protocol hex}; each output line is {@code read} and the struct's text, {@code
 * refused} and the reason, or {@code absent} if the release does not know the method.
 */
public final class ReadReplies {
  private static final String SERVICE = "org.apache.hadoop.hive.metastore.api.ThriftHiveMetastore$";

  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] parts = line.split(" ");
      System.out.println(read(parts[0], parts[1], HexFormat.of().parseHex(parts[2])));
    }
  }

  private static String read(String method, String protocolName, byte[] bytes) throws Exception {
    Class<?> type;
    try {
      type = Class.forName(SERVICE + method + "_result");
    } catch (ClassNotFoundException unknown) {
      return "absent";
    }
    TMemoryInputTransport transport = new TMemoryInputTransport(bytes);
    TProtocol protocol =
        protocolName.equals("compact") ? new TCompactProtocol(transport) : new TBinaryProtocol(transport);
    TBase<?, ?> result = (TBase<?, ?>) type.getDeclaredConstructor().newInstance();
    try {
      result.read(protocol);
    } catch (Exception refused) {
      return "refused " + refused;
    }
    if (transport.getBytesRemainingInBuffer() != 0) {
      return "refused " + transport.getBytesRemainingInBuffer() + " bytes left";
    }
    return "read " + result.toString().replace('\n', ' ');
  }

  private ReadReplies() {}
}
