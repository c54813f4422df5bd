# Flink with what it needs for Iceberg on S3; the versions are those of docs/engines/flink.md.
ARG MAVEN_IMAGE=docker.io/library/maven:3.9.11-eclipse-temurin-17
ARG FLINK_IMAGE=docker.io/library/flink:2.1.1-java17

FROM ${MAVEN_IMAGE} AS jars
RUN for jar in \
      org.apache.iceberg:iceberg-flink-runtime-2.1:1.11.0 \
      org.apache.iceberg:iceberg-aws-bundle:1.11.0 \
      org.apache.hadoop:hadoop-client-api:3.4.2 \
      org.apache.hadoop:hadoop-client-runtime:3.4.2; \
    do mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy "-Dartifact=$jar" -DoutputDirectory=/jars || exit 1; done

FROM ${FLINK_IMAGE}
COPY --from=jars /jars /opt/flink/lib
# For checkpoints and savepoints on S3.
RUN mkdir /opt/flink/plugins/s3-fs-presto && cp /opt/flink/opt/flink-s3-fs-presto-*.jar /opt/flink/plugins/s3-fs-presto/
