# The image of the server; docs/container.md says how to run it. The tags name exact versions; to pin the exact bytes as
# well, append a digest, as in node:22.23.2-bookworm-slim@sha256:...

FROM node:22.23.2-bookworm-slim AS node

FROM rust:1.95.0-slim-bookworm AS build
COPY --from=node /usr/local/bin/ /usr/local/bin/
COPY --from=node /usr/local/lib/node_modules/ /usr/local/lib/node_modules/
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY Cargo.toml Cargo.lock ./
COPY crates/ crates/
COPY scripts/ scripts/
COPY ts/ ts/
RUN node scripts/build.mjs

FROM node:22.23.2-bookworm-slim
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="svc" \
      org.opencontainers.image.description="Answers typed questions about a text or a JSON value, with calibrated probabilities." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Node's interpreter stays in the image, its package managers are removed. /data belongs to the server's user,
# everything else to root.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
      /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-* \
 && groupadd --gid 10001 svc \
 && useradd --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin svc \
 && install --directory --owner=10001 --group=10001 --mode=0750 /data \
 && ln -s /app/deploy/docker-entrypoint.sh /usr/local/bin/svc
COPY LICENSE package.json /app/
COPY bin/ /app/bin/
COPY models/ /app/models/
COPY deploy/docker-entrypoint.sh /app/deploy/
COPY --from=build /src/dist/app/ /app/dist/app/
COPY --from=build /src/dist/assets/ /app/dist/assets/
COPY --from=build /src/dist/docs/ /app/dist/docs/
COPY --from=build /src/dist/native/ /app/dist/native/
ENV NODE_ENV=production SVC_DATA=/data
USER 10001:10001
WORKDIR /data
EXPOSE 21118
# The check reads the settings as the server does, so it finds any address. A model may take long to load.
HEALTHCHECK --interval=15s --timeout=5s --start-period=2m --retries=3 CMD ["/app/deploy/docker-entrypoint.sh", "health"]
ENTRYPOINT ["/app/deploy/docker-entrypoint.sh"]
CMD ["serve"]
