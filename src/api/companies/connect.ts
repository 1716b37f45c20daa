import { createHash } from 'node:crypto';
import type { FastifyPluginAsync, FastifyReply } from 'fastify';
import type { CompanyKey } from '../../core/company.js';
import { isMusterError } from '../../core/errors.js';
import { explainDatabaseError } from '../../db/connection/sql-state.js';
import type { Authorization, Started } from '../../oauth/authorization.js';
import { FLOW_MS } from '../../oauth/authorization-flows.js';
import type { Connections } from '../../oauth/connections.js';
import type { Runs } from '../../runs/runs.js';
import { requestFirstSync } from '../runs/runs.js';
import { CONNECT_STYLE, type ConnectPage, connectPage } from './connect-page.js';
import { connectedPage, FAILED_PAGE, failurePage, UNAVAILABLE_PAGE } from './connect-texts.js';

/** Replaces a link with malformed percent-encoding, which the router would refuse, so that the customer still sees a page. */
export function mendConnectAddress(url: string): string {
  if (!url.startsWith('/connect/')) return url;
  try {
    decodeURI(url);
    return url;
  } catch {
    return '/connect';
  }
}

export interface ConnectPagesDependencies {
  readonly authorization: Authorization;
  readonly connections: Connections;
  readonly runs: Runs;
}

/** Failures that may be over when the visitor tries again in a moment. */
const DATABASE_FAILURES = [
  'database_unavailable',
  'statement_cancelled',
  'database_full',
  'database_failing',
  'database_busy',
] as const;

/** The OpenAPI document describes calls that carry a token, and no pages. */
const HIDDEN = { hide: true };

type Query = Readonly<Record<string, string | readonly string[] | undefined>>;

/** These pages run no script, load nothing and post nothing. */
const CONTENT_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(CONNECT_STYLE).digest('base64')}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`;

/**
 * The pages of the authorization flow, for people who have a link and no token. Their addresses hold secrets: they are not logged, not
 * stored by a browser, and not sent to another site.
 */
export function connectPages({ authorization, connections, runs }: ConnectPagesDependencies): FastifyPluginAsync {
  return async (pages) => {
    pages.addHook('onRequest', async (_request, reply) => {
      reply.headers({
        'cache-control': 'no-store',
        'referrer-policy': 'no-referrer',
        'content-security-policy': CONTENT_POLICY,
        'x-robots-tag': 'noindex',
      });
    });
    pages.setErrorHandler((error, request, reply) => {
      request.log.error({ err: error, route: request.routeOptions.url }, 'A page of the authorization flow failed');
      const cause = explainDatabaseError(error);
      const isAway = DATABASE_FAILURES.some((code) => isMusterError(cause, code));
      return send(reply, isAway ? UNAVAILABLE_PAGE : FAILED_PAGE);
    });

    // The wildcard gives a mangled link a page too, even one without its token. HEAD is allowed: opening a link spends nothing.
    for (const address of ['/connect', '/connect/*'])
      pages.get<{ Params: { '*'?: string } }>(address, { schema: HIDDEN }, async ({ params }, reply) => {
        const started = await authorization.start(params['*'] ?? '');
        if ('location' in started) return reply.header('set-cookie', cookieOf(started)).redirect(started.location.href, 302);
        return send(reply, failurePage(started, await nameOf(started)));
      });

    pages.route<{ Querystring: Query }>({
      method: 'GET',
      url: '/oauth/callback',
      schema: HIDDEN,
      // Programs send HEAD requests, which must not spend the code.
      exposeHeadRoute: false,
      async handler({ query, headers, log }, reply) {
        const outcome = await authorization.finish({
          code: single(query.code),
          state: single(query.state),
          mark: COOKIE.exec(headers.cookie ?? '')?.[1],
          error: single(query.error),
          errorDescription: single(query.error_description),
        });
        if ('failure' in outcome) return send(reply, failurePage(outcome, await nameOf(outcome)));
        const { company, created } = outcome;
        const syncing = await requestFirstSync(runs, company, created, log);
        return send(reply, connectedPage({ company, created, syncing, name: await nameOf(company) }));
      },
    });
  };

  async function nameOf({ environment, companyId }: Partial<CompanyKey>): Promise<string | undefined> {
    if (environment === undefined || companyId === undefined) return undefined;
    return (await connections.find({ environment, companyId }))?.name ?? undefined;
  }
}

const COOKIE = /(?:^|;\s*)muster_flow=([\w-]+)/;

/** With this cookie a browser sees its link again. A consent completes without it too, since a sign-in may end in another browser. */
function cookieOf({ mark, callback }: Started): string {
  const secure = callback.protocol === 'https:' ? '; Secure' : '';
  return `muster_flow=${mark}; Path=${callback.pathname}; Max-Age=${FLOW_MS / 1000}; HttpOnly; SameSite=Lax${secure}`;
}

/** A parameter given twice counts as missing: the service gives each once. */
function single(value: Query[string]): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function send(reply: FastifyReply, page: ConnectPage): FastifyReply {
  return reply.code(page.status).type('text/html; charset=utf-8').serializer(String).send(connectPage(page));
}
