import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.ActiveMQServers;
import org.apache.activemq.artemis.core.server.JournalType;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;

// A broker with an AMQP 1.0 listener and a file journal: HOST PORT FOLDER page|fsync.
// Queues are made when somebody asks for them, and deleted when they are empty and nobody uses them.
public class Artemis {
  public static void main(String[] args) throws Exception {
    String folder = args[2];
    boolean sync = args[3].equals("fsync");
    Configuration c = new ConfigurationImpl();
    c.setPersistenceEnabled(true).setSecurityEnabled(false).setJMXManagementEnabled(false);
    c.setJournalDirectory(folder + "/journal").setBindingsDirectory(folder + "/bindings");
    c.setLargeMessagesDirectory(folder + "/large").setPagingDirectory(folder + "/paging");
    c.setJournalType(JournalType.NIO).setJournalDatasync(sync);
    c.setJournalSyncNonTransactional(sync).setJournalSyncTransactional(sync);
    c.addAcceptorConfiguration("amqp", "tcp://" + args[0] + ":" + args[1] + "?protocols=AMQP;amqpCredits=1000;amqpLowCredits=300");
    c.addAddressSetting("#", new AddressSettings()
        .setAutoCreateQueues(true).setAutoCreateAddresses(true).setAutoDeleteQueues(true).setAutoDeleteAddresses(true)
        .setDefaultAddressRoutingType(RoutingType.ANYCAST).setDefaultQueueRoutingType(RoutingType.ANYCAST));
    ActiveMQServers.newActiveMQServer(c).start();
    Thread.currentThread().join();
  }
}
