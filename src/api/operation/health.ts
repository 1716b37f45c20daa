import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Clock } from '../../core/clock.js';
import { singleFlight } from '../../core/single-flight.js';
import { type ReadinessCheck, readinessOf } from '../plumbing/readiness.js';
import { watchMethods } from '../plumbing/request-checks.js';

const tags = ['operation'];
const security: [] = [];
export const ReadinessModel = z.object({
  ready: z.boolean(),
  parts: z
    .record(z.string(), z.object({ ready: z.boolean(), problem: z.string().optional() }))
    .describe('The part `workers` does not count for `ready`: without a worker the API is ready, and says so.'),
});

export interface HealthRoutesDependencies {
  readonly clock: Clock;
  readonly readiness: readonly ReadinessCheck[];
}

/** Probes carry no token, so these responses hold no secret. Concurrent probes share one check of the parts. */
export function healthRoutes({ clock, readiness }: HealthRoutesDependencies): FastifyPluginAsyncZod {
  const readinessNow = singleFlight(() => readinessOf(readiness), { clock, keepMs: 0 });
  return async (app) => {
    const refuseOtherMethods = watchMethods(app);
    app.get(
      '/healthz',
      {
        schema: {
          tags,
          security,
          operationId: 'showHealth',
          summary: 'Whether the process is alive',
          response: { 200: z.object({ status: z.literal('ok') }) },
        },
      },
      // The header tells Muster from any other program that says it is well.
      async (_request, reply) => reply.header('x-service', 'muster').send({ status: 'ok' as const }),
    );

    app.get(
      '/readyz',
      {
        schema: {
          tags,
          security,
          operationId: 'showReadiness',
          summary: 'Whether every part is there',
          description: '503 says which part is missing.',
          response: { 200: ReadinessModel, 503: ReadinessModel },
        },
      },
      async (_request, reply) => {
        const answer = await readinessNow();
        return reply.code(answer.ready ? 200 : 503).send(answer);
      },
    );
    refuseOtherMethods();
  };
}
