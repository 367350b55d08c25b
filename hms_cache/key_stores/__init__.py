"""Java's own key stores, JKS and JCEKS, as keytool and Hadoop write them. Only reading."""
