import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { QueueLook, QueueState } from '../../jobs/queue-look.js';
import { Count, EnvironmentName, presentTime, Time } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

const Queue = z
  .object({
    queue: z.string(),
    environment: EnvironmentName.nullable().describe('null for a queue that serves both.'),
    waiting: Count,
    active: Count,
    delayed: Count.describe('Put off: runs that wait to retry, repeatable jobs until they are due.'),
    failed: Count.describe('In the last day. A run that failed is no failed job.'),
    oldest_waiting_seconds: Count.nullable().describe('How long the job that waits for longest has been due.'),
    repeatable: z
      .array(z.object({ name: z.string(), every_seconds: z.number(), next_at: Time.nullable() }))
      .describe('The next one first.'),
  })
  .meta({
    id: 'Queue',
    description: 'What a queue holds. Jobs are wake-up calls: runs and what becomes of them are in /api/runs.',
  });
export type QueueModel = z.output<typeof Queue>;

export interface QueueRoutesDependencies {
  /** Looks at all queues; throws `queue_unavailable` within seconds. */
  readonly queueLook: Pick<QueueLook, 'look'>;
}

const { viewer } = operationsOf('operation');

export function queueRoutes({ queueLook }: QueueRoutesDependencies): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/queue',
      viewer('showQueue', 'Show what the queues hold', {
        description: 'Within three seconds: 503 where the queue does not answer.',
        response: { 200: z.object({ data: z.array(Queue) }) },
        problems: ['queue_unavailable'],
      }),
      async () => ({ data: (await queueLook.look()).map(presentQueue) }),
    );
  };
}

function presentQueue({ oldestWaitingSeconds, repeatable, ...counts }: QueueState): QueueModel {
  return {
    ...counts,
    oldest_waiting_seconds: oldestWaitingSeconds,
    repeatable: repeatable.map(({ name, everySeconds, nextAt }) => ({
      name,
      every_seconds: everySeconds,
      next_at: presentTime(nextAt),
    })),
  };
}
