# Flink with what it needs for Iceberg on S3; the versions are those of docs/engines/flink.md.
ARG FLINK_IMAGE=docker.io/library/flink:2.1.1-java17
FROM ${FLINK_IMAGE}
ARG MAVEN=https://repo1.maven.org/maven2
ADD --chmod=0644 ${MAVEN}/org/apache/iceberg/iceberg-flink-runtime-2.1/1.11.0/iceberg-flink-runtime-2.1-1.11.0.jar \
    ${MAVEN}/org/apache/iceberg/iceberg-aws-bundle/1.11.0/iceberg-aws-bundle-1.11.0.jar \
    ${MAVEN}/org/apache/hadoop/hadoop-client-api/3.4.2/hadoop-client-api-3.4.2.jar \
    ${MAVEN}/org/apache/hadoop/hadoop-client-runtime/3.4.2/hadoop-client-runtime-3.4.2.jar \
    /opt/flink/lib/
# For checkpoints and savepoints on S3.
RUN mkdir /opt/flink/plugins/s3-fs-presto && cp /opt/flink/opt/flink-s3-fs-presto-*.jar /opt/flink/plugins/s3-fs-presto/
