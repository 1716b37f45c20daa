import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Clock } from '../core/clock.js';
import { isMusterError } from '../core/errors.js';
import { sharedWork } from '../core/shared-work.js';
import { watchMethods } from './request-checks.js';

/** Work cannot rely on a part that takes longer to answer. */
const CHECK_TIMEOUT_MS = 5_000;

const tags = ['operation'];
const security: [] = [];
const Readiness = z.object({
  ready: z.boolean(),
  parts: z.record(z.string(), z.object({ ready: z.boolean(), problem: z.string().optional() })),
});

/** One part without which Muster cannot work; `check` throws when it is missing. */
export interface ReadinessCheck {
  readonly name: string;
  check(): Promise<unknown>;
}

export interface HealthRoutesDependencies {
  readonly clock: Clock;
  readonly readiness: readonly ReadinessCheck[];
}

/** Probes carry no token: the answers of these routes hold nothing secret. However many ask, the parts are asked once at a time. */
export function healthRoutes({ clock, readiness }: HealthRoutesDependencies): FastifyPluginAsyncZod {
  const probeAll = sharedWork(async () => Object.fromEntries(await probeEach(readiness)), { clock, keepMs: 0 });
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
          response: { 200: Readiness, 503: Readiness },
        },
      },
      async (_request, reply) => {
        const parts = await probeAll();
        const ready = Object.values(parts).every((part) => part.ready);
        return reply.code(ready ? 200 : 503).send({ ready, parts });
      },
    );
    refuseOtherMethods();
  };
}

/** Whether every part is there. */
export async function isReady(readiness: readonly ReadinessCheck[]): Promise<boolean> {
  return (await probeEach(readiness)).every(([, { ready }]) => ready);
}

function probeEach(readiness: readonly ReadinessCheck[]) {
  return Promise.all(readiness.map(async (part) => [part.name, await probe(part)] as const));
}

async function probe(part: ReadinessCheck): Promise<{ ready: boolean; problem?: string }> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), CHECK_TIMEOUT_MS);
  });
  try {
    if ((await Promise.race([part.check(), late])) === 'late') return { ready: false, problem: 'does not answer' };
    return { ready: true };
  } catch (error) {
    return { ready: false, problem: isMusterError(error) ? error.message : 'failed' };
  } finally {
    clearTimeout(timer);
  }
}
