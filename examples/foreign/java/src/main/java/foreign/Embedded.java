package foreign;

import org.apache.catalina.startup.Tomcat;

/** What both Tomcats share: the port, and where they keep their files. */
final class Embedded {
    private Embedded() {}

    static Tomcat tomcat() {
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(System.getenv("BASE"));
        tomcat.setHostname("localhost");
        tomcat.setPort(Integer.parseInt(System.getenv("PORT")));
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        return tomcat;
    }
}
