# The image of Frazil: one static binary, and beside it certificates, licences and the bill of materials alone.
#
#   docker build -t frazil .                                compiles it
#   docker build -t frazil --build-arg ROOT=prepared .      takes what `deploy/image/prepare target/image` has made
#
# The same commit gives the same layers: the base is named by its version (give RUST_IMAGE with a digest to pin it),
# dependencies by Cargo.lock, and the times of files by SOURCE_DATE_EPOCH with `--output type=image,rewrite-timestamp=true`.
ARG RUST_IMAGE=docker.io/library/rust:1.95.0-bookworm
ARG ROOT=compiled

FROM ${RUST_IMAGE} AS compiled
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    deploy/image/prepare /root-of-image

FROM scratch AS prepared
COPY target/image /root-of-image

# hadolint ignore=DL3006
FROM ${ROOT} AS root

FROM scratch
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Frazil" \
      org.opencontainers.image.description="An Apache Iceberg REST catalog server with commit coordination" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=root /root-of-image/etc /etc
COPY --from=root /root-of-image/usr /usr
COPY --from=root --chown=65532:65532 /root-of-image/data /data
ENV PATH=/usr/bin FRAZIL_CONFIG=/etc/frazil/frazil.toml SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
USER 65532:65532
WORKDIR /data
VOLUME ["/data"]
EXPOSE 8181
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s --retries=3 CMD ["/usr/bin/frazil", "health"]
ENTRYPOINT ["/usr/bin/frazil"]
CMD ["serve"]
