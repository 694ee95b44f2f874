// Prints record batches as Apache Kafka's own client writes them, one for each compression: java.txt.
//   java -cp 'jars/*' Batches.java > java.txt      with kafka-clients 4.3.1 and what it depends on in jars
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.internal.*;

public class Batches {
    static byte[] bytes(String s) { return s.getBytes(StandardCharsets.UTF_8); }

    public static void main(String[] args) {
        long t = 1_700_000_000_000L;
        Header[] headers = {
            new RecordHeader("a", bytes("1")), new RecordHeader("", bytes("")), new RecordHeader("a", null), new RecordHeader("ä", bytes("2")),
        };
        SimpleRecord[] records = {
            new SimpleRecord(t, bytes("key"), bytes("value")),
            new SimpleRecord(t + (1L << 40), (byte[]) null, (byte[]) null),
            new SimpleRecord(t - 5, bytes(""), bytes("")),
            new SimpleRecord(t, null, bytes("abcdefgh".repeat(250)), headers),
        };
        for (CompressionType type : new CompressionType[] {
            CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD,
        }) {
            ByteBuffer b = MemoryRecords.withRecords(41L, Compression.of(type).build(), records).buffer();
            byte[] raw = new byte[b.remaining()];
            b.get(raw);
            System.out.println(type.name + " " + HexFormat.of().formatHex(raw));
        }
    }
}
