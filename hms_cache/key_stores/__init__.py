"""Reads key stores: Java's own formats JKS and JCEKS, as keytool and Hadoop write them, and PKCS12. Writes none."""
