import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { FastifyInstance } from 'fastify';
import type { PageAssets } from './parts/view.js';

/** The address of a file changes with its content, so browsers may cache it for a year. */
const FOREVER = 'public, max-age=31536000, immutable';

const own = (name: string) => new URL(`./assets/${name}`, import.meta.url);
const FILES = [
  { name: 'control-room.css', type: 'text/css; charset=utf-8', url: own('control-room.css') },
  {
    name: 'htmx.js',
    type: 'text/javascript; charset=utf-8',
    url: pathToFileURL(createRequire(import.meta.url).resolve('htmx.org/dist/htmx.min.js')),
  },
  { name: 'control-room.js', type: 'text/javascript; charset=utf-8', url: own('control-room.js') },
] as const;

/**
 * Serves the style and the scripts of the pages. Returns their addresses. During an upgrade a page of another version may ask here: it gets the file of this
 * version, which is better than none, and keeps it for that page alone.
 */
export function serveAssets(pages: FastifyInstance): PageAssets {
  const [sheet, ...scripts] = FILES.map(({ name, type, url }) => {
    const content = readFileSync(fileURLToPath(url));
    const digest = createHash('sha256').update(content).digest('hex').slice(0, 16);
    const addressOf = (version: string) => `/assets/${version}/${name}`;
    pages.get<{ Params: { digest: string } }>(addressOf(':digest'), { schema: { hide: true } }, async ({ params }, reply) => {
      const caching = params.digest === digest ? FOREVER : 'no-store';
      return reply.headers({ 'content-type': type, 'cache-control': caching }).serializer(identity).send(content);
    });
    return addressOf(digest);
  });
  const icon = readFileSync(fileURLToPath(own('favicon.svg')));
  pages.get('/favicon.svg', { schema: { hide: true } }, async (_request, reply) =>
    reply.headers({ 'content-type': 'image/svg+xml', 'cache-control': 'public, max-age=86400' }).serializer(identity).send(icon),
  );
  return { sheet: sheet!, scripts };
}

const identity = (content: Buffer) => content as never;
