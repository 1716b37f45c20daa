import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Registry } from 'prom-client';
import { z } from 'zod';
import type { Clock } from '../../core/clock.js';
import { singleFlight } from '../../core/single-flight.js';
import { type AccessRules, requireToken } from '../plumbing/access.js';
import { answers } from '../plumbing/operations.js';
import { watchMethods } from '../plumbing/request-checks.js';

/** One response serves every scraper for so long. Prometheus asks every 15 s or so. */
const KEEP_MS = 5_000;

export interface MetricsRouteDependencies {
  readonly clock: Clock;
  readonly metrics: Registry;
}

/**
 * Serves metrics. Concurrent scrapers share one reading of the database and the same bytes. Without `access`, which a setting gives, the metrics are
 * open: they hold no secret.
 */
export function metricsRoute(
  { clock, metrics }: MetricsRouteDependencies,
  access: AccessRules | undefined,
): FastifyPluginAsyncZod {
  const scrape = singleFlight(async () => Buffer.from(await metrics.metrics()), { clock, keepMs: KEEP_MS });

  return async (app) => {
    if (access) requireToken(app, access);
    const refuseOtherMethods = watchMethods(app);
    app.get(
      '/metrics',
      {
        schema: {
          tags: ['operation'],
          ...(!access && { security: [] }),
          operationId: 'showMetrics',
          summary: 'Metrics in the text format of Prometheus',
          response: answers({ 200: { description: 'Metrics', content: { 'text/plain': { schema: z.string() } } } }, [
            'database_unavailable',
          ]),
        },
      },
      async (_request, reply) => reply.type(metrics.contentType).send((await scrape()) as never),
    );
    refuseOtherMethods();
  };
}
