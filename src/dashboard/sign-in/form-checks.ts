import type { FastifyInstance, FastifyRequest } from 'fastify';
import { MusterError } from '../../core/errors.js';
import { isSameText } from './sessions.js';

/** Pages accept no request bodies but forms. */
export function takeOnlyForms(pages: FastifyInstance): void {
  pages.removeAllContentTypeParsers();
  pages.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) => {
    done(null, new URLSearchParams(body as string));
  });
}

export function fieldsOf({ body }: FastifyRequest): URLSearchParams {
  return body instanceof URLSearchParams ? body : new URLSearchParams();
}

/**
 * Throws `forbidden` for a form from another site, if the browser says so. `publicUrl` is the address of the pages; a browser that reaches
 * them by another name also sends that name as host.
 */
export function refuseOtherSites({ headers }: FastifyRequest, publicUrl: URL): void {
  const { origin, host, 'sec-fetch-site': site } = headers;
  const isOwn = site === undefined ? origin === undefined || isOwnOrigin(origin, host, publicUrl) : site === 'same-origin';
  if (!isOwn) throw foreignForm();
}

/** Throws `forbidden` for a form that does not come from a page of this session. */
export function requireOwnForm(request: FastifyRequest, csrf: string): void {
  if (!isSameText(fieldsOf(request).get('csrf') ?? '', csrf)) throw foreignForm();
}

function isOwnOrigin(origin: string, host: string | undefined, publicUrl: URL): boolean {
  return origin === publicUrl.origin || (URL.canParse(origin) && new URL(origin).host === host);
}

function foreignForm(): MusterError {
  return new MusterError(
    'forbidden',
    'The form did not come from a page of this session: open the page again, and send it from there.',
  );
}
