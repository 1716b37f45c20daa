import { createHash } from 'node:crypto';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import type { Catalogue } from '../../catalogue/endpoint.js';
import type { CompanyKey } from '../../core/company.js';
import { isMusterError } from '../../core/errors.js';
import { explainDatabaseError } from '../../db/connection/sql-state.js';
import type { Authorization, Started } from '../../oauth/authorization.js';
import { FLOW_MS } from '../../oauth/authorization-flows.js';
import type { Connections } from '../../oauth/connections.js';
import type { Runs } from '../../runs/runs.js';
import { asksForPage } from '../plumbing/problem.js';
import { requestFirstSync } from '../runs/runs.js';
import type { Operator } from './connect-operator.js';
import { brokenPage, connectedPage, failurePage } from './connect-outcomes.js';
import { CONNECT_STYLE, type ConnectPage, connectPage } from './connect-page.js';
import { requestPage } from './connect-request.js';
import { BUILT_IN_TEXTS, type Language, languageFor } from './connect-texts.js';

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
  readonly catalogue: Catalogue;
  /** Who asks, as the pages say. Default: without a name, in the languages that Muster brings. */
  readonly operator?: Operator;
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

/** These pages run no script, load nothing and post nothing. A logo is part of the page. */
function contentPolicy({ logo }: Operator): string {
  const style = createHash('sha256').update(CONNECT_STYLE).digest('base64');
  const image = logo === undefined ? '' : ' img-src data:;';
  return `default-src 'none'; style-src 'sha256-${style}';${image} form-action 'none'; frame-ancestors 'none'; base-uri 'none'`;
}

/**
 * The pages of the authorization flow, for people who have a link and no token. Their addresses hold secrets: they are not logged, not
 * stored by a browser, and not sent to another site.
 */
export function connectPages(deps: ConnectPagesDependencies): FastifyPluginAsync {
  const { authorization, connections, runs, catalogue, operator = { texts: BUILT_IN_TEXTS } } = deps;
  const policy = contentPolicy(operator);

  return async (pages) => {
    pages.addHook('onRequest', async (_request, reply) => {
      reply.headers({
        'cache-control': 'no-store',
        'referrer-policy': 'no-referrer',
        'content-security-policy': policy,
        'x-robots-tag': 'noindex',
        vary: 'accept, accept-language',
      });
    });
    pages.setErrorHandler((error, request, reply) => {
      request.log.error({ err: error, route: request.routeOptions.url }, 'A page of the authorization flow failed');
      const cause = explainDatabaseError(error);
      const isAway = DATABASE_FAILURES.some((code) => isMusterError(cause, code));
      const language = languageOf(request);
      return send(reply, brokenPage(isAway ? 'unavailable' : 'failed', language), language);
    });

    // The wildcard gives a mangled link a page too, even one without its token. HEAD is allowed: opening a link spends nothing.
    for (const address of ['/connect', '/connect/*'])
      pages.get<{ Params: { '*'?: string }; Querystring: Query }>(address, { schema: HIDDEN }, async (request, reply) => {
        const token = request.params['*'] ?? '';
        // A program is sent on at once. A person first sees who asks for what, and their browser comes back with `go`.
        const asksFirst = asksForPage(request) && request.query.go === undefined;
        const outcome = asksFirst ? await authorization.look(token) : await authorization.start(token);
        if ('location' in outcome) return reply.header('set-cookie', cookieOf(outcome)).redirect(outcome.location.href, 302);
        const company = await nameOf(outcome);
        const language = languageOf(request);
        if ('failure' in outcome) return send(reply, failurePage(outcome, company, language), language);
        const namesCompany = outcome.companyId !== undefined;
        return send(reply, requestPage({ company, namesCompany, operator, catalogue }, language), language);
      });

    pages.route<{ Querystring: Query }>({
      method: 'GET',
      url: '/oauth/callback',
      schema: HIDDEN,
      // Programs send HEAD requests, which must not spend the code.
      exposeHeadRoute: false,
      async handler(request, reply) {
        const { query, headers, log } = request;
        const language = languageOf(request);
        const outcome = await authorization.finish({
          code: single(query.code),
          state: single(query.state),
          mark: COOKIE.exec(headers.cookie ?? '')?.[1],
          error: single(query.error),
          errorDescription: single(query.error_description),
        });
        if ('failure' in outcome) return send(reply, failurePage(outcome, await nameOf(outcome), language), language);
        const { company, created } = outcome;
        const syncing = await requestFirstSync(runs, company, created, log);
        const onward = onwardOf(operator, language);
        return send(reply, connectedPage({ created, syncing, company: await nameOf(company), onward }, language), language);
      },
    });
  };

  function languageOf({ headers }: FastifyRequest): Language {
    return languageFor(operator.texts, headers['accept-language']);
  }

  async function nameOf({ environment, companyId }: Partial<CompanyKey>): Promise<string | undefined> {
    if (environment === undefined || companyId === undefined) return undefined;
    return (await connections.find({ environment, companyId }))?.name ?? undefined;
  }

  function send(reply: FastifyReply, page: ConnectPage, language: Language): FastifyReply {
    const text = connectPage(page, operator, language);
    return reply
      .code(page.status)
      .headers({ 'content-language': language.tag })
      .type('text/html; charset=utf-8')
      .serializer(String)
      .send(text);
  }
}

function onwardOf({ name, returnUrl }: Operator, { text }: Language): ConnectPage['action'] {
  if (returnUrl === undefined) return undefined;
  return { label: name === undefined ? text('return') : text('return_operator', { operator: name }), href: returnUrl.href };
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
