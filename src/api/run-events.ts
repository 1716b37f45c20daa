import { Readable } from 'node:stream';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { systemClock } from '../core/clock.js';
import { MusterError } from '../core/errors.js';
import type { RunRow } from '../db/tables/runs.js';
import type { Runs } from '../runs/runs.js';
import { answers, IdParams } from './models.js';
import { presentRun } from './run-model.js';

const EVENT_STREAM = 'text/event-stream';
/** The run is read that often: any worker may move it, in the database. */
const READ_MS = 500;
/** After so many reads without news a comment is sent, for proxies end connections that are silent for a minute. */
const SILENT_READS = 30;

/** Live progress of a run as server-sent events: `run` whenever it has moved, the last one when it is over. */
export function runEventRoutes({ runs }: { readonly runs: Runs }): FastifyPluginAsyncZod {
  return async (api) => {
    const closing = new AbortController();
    // A stream would keep the server from closing for as long as its run goes on.
    api.addHook('preClose', async () => closing.abort());

    api.get(
      '/runs/:id/events',
      {
        schema: {
          tags: ['runs'],
          operationId: 'followRun',
          summary: 'Follow a run',
          description:
            'Server-sent events: one `run`, with the run as its data, at once and whenever it has moved. The stream ends with the run.',
          params: IdParams,
          response: { ...answers({}), 200: { description: 'Events', content: { [EVENT_STREAM]: { schema: z.string() } } } },
        },
      },
      async ({ params: { id } }, reply) => {
        const run = await runs.find(id);
        if (!run) throw new MusterError('run_not_found', `There is no run ${id}: GET /api/runs lists them.`);
        const events = Readable.from(follow(runs, run, closing.signal), { objectMode: false });
        return reply
          .type(EVENT_STREAM)
          .header('cache-control', 'no-store')
          .header('x-accel-buffering', 'no')
          .send(events as never);
      },
    );
  };
}

async function* follow(runs: Runs, first: RunRow, signal: AbortSignal): AsyncGenerator<string> {
  let sent = '';
  let silent = 0;
  for (let run: RunRow | undefined = first; run; run = await runs.find(first.id)) {
    const text = JSON.stringify(presentRun(run));
    silent = text === sent ? silent + 1 : 0;
    if (text !== sent) yield `event: run\ndata: ${text}\n\n`;
    else if (silent % SILENT_READS === 0) yield ': still here\n\n';
    sent = text;
    if (run.status !== 'queued' && run.status !== 'running') return;
    try {
      await systemClock.sleep(READ_MS, signal);
    } catch {
      return;
    }
  }
}
