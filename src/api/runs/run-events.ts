import type { FastifyReply } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Clock } from '../../core/clock.js';
import { MusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import type { Logger } from '../../observability/logger.js';
import type { Runs } from '../../runs/runs.js';
import { ActiveReaders, findActiveIn } from '../plumbing/active-readers.js';
import { IdParams } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';
import { RunStream } from './run-stream.js';
import { type RunSight, RunWatch } from './run-watch.js';

const EVENT_STREAM = 'text/event-stream';
/** A refused watcher is told to ask again after this many seconds. */
const RETRY_SECONDS = 5;

/** How long a watcher has to read the last event before its connection is ended. */
const LAST_EVENT_MS = 1_000;

/** One event. Its data is the JSON text of the run as `showRun` gives it. */
const RunEvent = z.object({
  event: z.literal('run'),
  data: z.string().meta({ contentMediaType: 'application/json', contentSchema: { $ref: '#/components/schemas/Run' } }),
});

interface RunEventDependencies {
  readonly clock: Clock;
  readonly db: Database;
  readonly logger: Logger;
  readonly runs: Runs;
}

const { viewer } = operationsOf('runs');

/** Live progress of a run as server-sent events. At most `mostStreams` streams are open at once. */
export function runEventRoutes({ clock, db, logger, runs }: RunEventDependencies, mostStreams: number): FastifyPluginAsyncZod {
  return async (api) => {
    const readers = new ActiveReaders({ clock, logger, findActive: findActiveIn(db) });
    const watch = new RunWatch({ clock, logger, findRuns: (ids) => runs.findAll(ids) });
    const streams = new Set<RunStream>();
    // Otherwise a stream would keep the server open until its run ends.
    api.addHook('preClose', async () => {
      for (const stream of streams) stream.endWithin(LAST_EVENT_MS);
    });

    api.get(
      '/runs/:id/events',
      viewer('followRun', 'Follow a run', {
        description:
          'Server-sent events: a `run` event, with the run as its data, at once and whenever the run changes. The stream ends with the run, and within seconds after its token or session ends. 503 if too many streams of this process are open.',
        params: IdParams,
        response: { 200: { description: 'Events', content: { [EVENT_STREAM]: { schema: RunEvent } } } },
        problems: ['run_not_found', 'overloaded'],
      }),
      async ({ method, caller, params: { id } }, reply) => {
        reply.type(EVENT_STREAM).header('cache-control', 'no-store').header('x-accel-buffering', 'no');
        if (method === 'HEAD') {
          await see(id);
          return reply.send('' as never);
        }
        const stream = openStream(reply);
        try {
          const seen = await see(id);
          stream.update(seen);
          stream.once(
            'close',
            watch.watch(id, seen, (sight) => stream.update(sight)),
          );
          stream.once(
            'close',
            readers.add(caller, () => stream.withdraw(LAST_EVENT_MS)),
          );
        } catch (error) {
          stream.destroy();
          throw error;
        }
        return reply.send(stream as never);
      },
    );

    async function see(id: string): Promise<RunSight> {
      const sight = await watch.see(id);
      if (!sight) throw new MusterError('run_not_found', `There is no run ${id}: GET /api/runs lists them.`);
      return sight;
    }

    /** Called before any database query, so that a client which keeps asking for one stream too many costs next to nothing. */
    function openStream(reply: FastifyReply): RunStream {
      if (streams.size >= mostStreams) {
        reply.header('retry-after', RETRY_SECONDS);
        throw new MusterError(
          'overloaded',
          `This process has ${mostStreams} event streams open, which is its limit: try again soon.`,
        );
      }
      const stream = new RunStream(clock);
      streams.add(stream);
      stream.once('close', () => streams.delete(stream));
      return stream;
    }
  };
}
