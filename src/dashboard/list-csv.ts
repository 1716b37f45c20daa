import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { CSV, NEXT_CURSOR } from '../api/plumbing/csv.js';
import type { InProcessApi } from '../api/plumbing/in-process-api.js';
import { sendCsv } from './do-action.js';
import { listAddress } from './parts/list-page.js';
import type { Session } from './sign-in/sessions.js';

/** The lists whose pages link to a file with all that matches. The API gives them as CSV page by page. */
const LISTS = ['/companies', '/audit'] as const;
const LIMIT = 200;

interface Page {
  readonly csv: string;
  readonly next: string | undefined;
}

interface CsvRoutesDependencies {
  readonly calls: Pick<InProcessApi, 'follow'>;
  /** Calls the API for its problem, which it throws: a page shows it. */
  readonly ask: (session: Session, path: string) => Promise<unknown>;
}

/** Adds `/companies.csv` and `/audit.csv`, which take the filters of their lists. */
export function listCsvRoutes(pages: FastifyInstance, { calls, ask }: CsvRoutesDependencies): void {
  for (const path of LISTS) {
    pages.get(`${path}.csv`, { schema: { hide: true } }, async ({ session, url }: FastifyRequest, reply) => {
      const filters = Object.fromEntries(new URLSearchParams(url.split('?')[1]));
      const addressOf = (cursor: string | undefined) =>
        listAddress(`/api${path}`, { limit: LIMIT, ...filters, ...(cursor !== undefined && { cursor }) });

      async function read(cursor?: string): Promise<Page> {
        const address = addressOf(cursor);
        const { status, headers, stream } = await calls.follow(session.caller, address, { accept: CSV });
        const csv = await text(stream);
        if (status !== 200) {
          await ask(session, address);
          throw new Error(`${address} answered ${status} as CSV, and nothing is wrong with it as JSON.`);
        }
        return { csv, next: headers[NEXT_CURSOR.toLowerCase()] as string | undefined };
      }

      // A problem with the first page, such as a filter that the API refuses, is shown. Later the file has begun, and the download fails.
      const first = await read();
      return sendCsv(reply, `${path.slice(1)}.csv`, Readable.from(joined(first, read)));
    });
  }
}

/** The pages as one file: only the first has the line of names. */
async function* joined(first: Page, read: (cursor: string) => Promise<Page>): AsyncGenerator<string> {
  yield first.csv;
  for (let { next } = first; next !== undefined; ) {
    const page = await read(next);
    yield page.csv.slice(page.csv.indexOf('\r\n') + 2);
    next = page.next;
  }
}
