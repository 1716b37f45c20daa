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

/** Serves the style and the scripts of the pages. Returns their addresses. */
export function serveAssets(pages: FastifyInstance): PageAssets {
  const [sheet, ...scripts] = FILES.map(({ name, type, url }) => {
    const content = readFileSync(fileURLToPath(url));
    const digest = createHash('sha256').update(content).digest('hex').slice(0, 16);
    const address = `/assets/${digest}/${name}`;
    pages.get(address, { schema: { hide: true } }, async (_request, reply) =>
      reply.headers({ 'content-type': type, 'cache-control': FOREVER }).serializer(identity).send(content),
    );
    return address;
  });
  const icon = readFileSync(fileURLToPath(own('favicon.svg')));
  pages.get('/favicon.svg', { schema: { hide: true } }, async (_request, reply) =>
    reply.headers({ 'content-type': 'image/svg+xml', 'cache-control': 'public, max-age=86400' }).serializer(identity).send(icon),
  );
  return { sheet: sheet!, scripts };
}

const identity = (content: Buffer) => content as never;
