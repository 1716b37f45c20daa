import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { fakeService, type Received } from '../http/fake-service.js';

/** What stands around a record's text in PostgreSQL, and in the answer without the two spaces. */
const record = (id: string, text: string, space: string) => `{"id":${space}"${id}",${space}"text":${space}"${text}"}`;

export interface LargePages {
  readonly pages: number;
  readonly recordsOnPage: number;
  /** Bytes of a record's text. */
  readonly textBytes: number;
  /** How the body comes: its length said before, or not, or as a gzip. */
  readonly sent: 'measured' | 'chunked' | 'gzip';
}

/** A service whose companies all have one list of these pages. A refresh token is the company's id. */
export async function largePages({ pages, recordsOnPage, textBytes, sent }: LargePages) {
  // Pages overlap by a record.
  const total = pages * (recordsOnPage - 1) + 1;
  const id = (n: number) => String(n).padStart(8, '0');
  const textOf = (n: number) => `${id(n)} `.repeat(Math.ceil(textBytes / 9)).slice(0, textBytes);
  const bodies = new Map<string, Buffer>();
  const body = (skip: number, take: number): Buffer => {
    const key = `${skip}+${take}`;
    const kept = bodies.get(key);
    if (kept) return kept;
    const records = Array.from({ length: Math.min(take, total - skip) }, (_, n) => record(id(skip + n), textOf(skip + n), ''));
    const text = Buffer.from(`{"totalRecords":${total},"data":[${records.join(',')}]}`);
    const made = sent === 'gzip' ? gzipSync(text, { level: 1 }) : text;
    bodies.set(key, made);
    return made;
  };
  const answer = ({ url, body: form }: Received, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(url, 'http://service');
    if (pathname === '/auth/token') {
      const company = new URLSearchParams(form).get('refresh_token')!;
      const pair = {
        access_token: company,
        expires_in: 86_400,
        token_type: 'Bearer',
        refresh_token: company,
        company_id: company,
      };
      return void response.setHeader('content-type', 'application/json').end(JSON.stringify(pair));
    }
    if (!pathname.endsWith('/employees')) return void response.setHeader('content-type', 'application/json').end('{}');
    const bytes = body(Number(searchParams.get('skip')), Number(searchParams.get('$take')));
    response.setHeader('content-type', 'application/json');
    if (sent === 'gzip') response.setHeader('content-encoding', 'gzip');
    if (sent !== 'chunked') response.setHeader('content-length', bytes.length);
    response.end(bytes);
  };
  const { url, close } = await fakeService(answer);
  const digest = createHash('md5');
  for (let n = 0; n < total; n += 1)
    digest.update(
      createHash('md5')
        .update(record(id(n), textOf(n), ' ').replace(',"', ', "'))
        .digest('hex'),
    );
  return { url, close, total, digest: digest.digest('hex') };
}
