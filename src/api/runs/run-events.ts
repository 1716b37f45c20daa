import type { FastifyReply } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Clock } from '../../core/clock.js';
import { MusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import type { Logger } from '../../observability/logger.js';
import type { Runs } from '../../runs/runs.js';
import { ActiveReaders, findActiveIn } from '../plumbing/active-readers.js';
import { answers, IdParams } from '../plumbing/models.js';
import { RunStream } from './run-stream.js';
import { type RunSight, RunWatch } from './run-watch.js';

const EVENT_STREAM = 'text/event-stream';
/** After so many seconds a watcher who was refused asks again. */
const RETRY_SECONDS = 5;

/** How long a watcher has to read what was sent before the process stops, or before the connection of one who may read no more is ended. */
const LAST_WORDS_MS = 1_000;

/** One event. Its data is the run as `showRun` gives it, as JSON text. */
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

/** Live progress of a run as server-sent events. No more than `mostStreams` are open at once. */
export function runEventRoutes({ clock, db, logger, runs }: RunEventDependencies, mostStreams: number): FastifyPluginAsyncZod {
  return async (api) => {
    const readers = new ActiveReaders({ clock, logger, findActive: findActiveIn(db) });
    const watch = new RunWatch({ clock, logger, findRuns: (ids) => runs.findAll(ids) });
    const streams = new Set<RunStream>();
    // A stream would keep the server from closing for as long as its run goes on.
    api.addHook('preClose', async () => {
      for (const stream of streams) stream.endWithin(LAST_WORDS_MS);
    });

    api.get(
      '/runs/:id/events',
      {
        config: { role: 'viewer' },
        schema: {
          tags: ['runs'],
          operationId: 'followRun',
          summary: 'Follow a run',
          description:
            'Server-sent events: one `run`, with the run as its data, at once and whenever it has moved. The stream ends with the run, and within some seconds of the end of the token or session that it was asked for with. 503 where as many are followed as this process takes.',
          params: IdParams,
          response: answers({ 200: { description: 'Events', content: { [EVENT_STREAM]: { schema: RunEvent } } } }, [
            'run_not_found',
            'overloaded',
          ]),
        },
      },
      async ({ method, caller, params: { id } }, reply) => {
        reply.type(EVENT_STREAM).header('cache-control', 'no-store').header('x-accel-buffering', 'no');
        if (method === 'HEAD') {
          await see(id);
          return reply.send('' as never);
        }
        const stream = openStream(reply);
        try {
          const seen = await see(id);
          stream.tell(seen);
          stream.once(
            'close',
            watch.watch(id, seen, (sight) => stream.tell(sight)),
          );
          stream.once(
            'close',
            readers.add(caller, () => stream.withdraw(LAST_WORDS_MS)),
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

    /** Before anything is read of the database: whoever asks again and again for one too many costs next to nothing. */
    function openStream(reply: FastifyReply): RunStream {
      if (streams.size >= mostStreams) {
        reply.header('retry-after', RETRY_SECONDS);
        throw new MusterError(
          'overloaded',
          `This process has ${mostStreams} event streams open, and takes no more: try again soon.`,
        );
      }
      const stream = new RunStream(clock);
      streams.add(stream);
      stream.once('close', () => streams.delete(stream));
      return stream;
    }
  };
}
