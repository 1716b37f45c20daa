import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ApiForPages } from '../api/plumbing/in-process-api.js';
import { MusterError } from '../core/errors.js';
import { actionRoutes } from './do-action.js';
import { auditPage } from './pages/audit-page.js';
import { certificatesPage } from './pages/certificates-page.js';
import { companiesPage } from './pages/companies-page.js';
import { companyPage, removePage } from './pages/company-page.js';
import { connectCompanyPage } from './pages/connect-company-page.js';
import { diffPage } from './pages/diff-page.js';
import { forgetPage } from './pages/forget-page.js';
import { approveGrantsPage, holdsPage } from './pages/holds-page.js';
import { notificationsPage } from './pages/notifications-page.js';
import { overviewPage } from './pages/overview-page.js';
import { problemIn, problemPage } from './pages/problem-page.js';
import { queuePage } from './pages/queue-page.js';
import { runPage } from './pages/run-page.js';
import { runsPage } from './pages/runs-page.js';
import { schemaPage } from './pages/schema-page.js';
import { type ShownSetting, settingsPage } from './pages/settings-page.js';
import { tokensPage } from './pages/tokens-page.js';
import type { PageContent } from './parts/layout.js';
import type { PageRequest } from './parts/page-request.js';
import type { Session } from './sign-in/sessions.js';

export interface PageRoutesDependencies {
  readonly api: ApiForPages;
  readonly sessionOf: (request: FastifyRequest) => Promise<Session | undefined>;
  readonly publicUrl: URL;
  readonly base: string;
  readonly settings: readonly ShownSetting[];
  readonly show: (reply: FastifyReply, content: PageContent, session?: Session) => FastifyReply;
}

/** By their paths; the page of settings, which asks nothing, is beside them. */
export const PAGES: Readonly<Record<string, (request: PageRequest) => Promise<PageContent>>> = {
  '/': overviewPage,
  '/companies': companiesPage,
  '/companies/connect': connectCompanyPage,
  '/companies/:environment/:company_id': companyPage,
  '/companies/:environment/:company_id/forget': forgetPage,
  '/companies/:environment/:company_id/remove': removePage,
  '/runs': runsPage,
  '/runs/:id': runPage,
  '/runs/:id/diff': diffPage,
  '/holds': holdsPage,
  '/holds/approve-grants/:environment': approveGrantsPage,
  '/certificates': certificatesPage,
  '/schema': schemaPage,
  '/notifications': notificationsPage,
  '/audit': auditPage,
  '/queue': queuePage,
  '/tokens': tokensPage,
};

declare module 'fastify' {
  interface FastifyRequest {
    /** Set in every page that asks for somebody who is signed in, before its handler is called. */
    session: Session;
  }
}

const HIDDEN = { schema: { hide: true } };

/** The pages for whoever is signed in. Everybody else is led to the page for signing in, and from there back. */
export function pageRoutes(pages: FastifyInstance, deps: PageRoutesDependencies): void {
  const { api, sessionOf, base, show } = deps;
  pages.decorateRequest('session');
  pages.addHook('onRequest', async (request, reply) => {
    const session = await signedIn(request, reply);
    if (session) request.session = session;
    return session ? undefined : reply;
  });

  pages.get('/settings', HIDDEN, async ({ session }, reply) => show(reply, settingsPage(deps.settings), session));
  for (const [path, page] of Object.entries(PAGES)) {
    pages.get(path, HIDDEN, async (request, reply) => {
      const { session } = request;
      const content = await page({
        params: request.params as Record<string, string>,
        query: new URLSearchParams(request.url.split('?')[1]),
        ask: (call) => ask(session, call, path.includes(':')),
      });
      return show(reply, content, session);
    });
  }

  pages.get('/runs/:id/events', HIDDEN, async (request, reply) => {
    const { id } = request.params as { id: string };
    const { status, stream } = await api.calls.follow(request.session.caller, `/api/runs/${encodeURIComponent(id)}/events`);
    const type = status === 200 ? 'text/event-stream' : 'application/problem+json';
    reply.raw.once('close', () => stream.destroy());
    return reply.code(status).headers({ 'content-type': type, 'x-accel-buffering': 'no' }).send(stream);
  });

  actionRoutes(pages, deps);

  api.onUnknown(async (request, reply) => {
    const session = await signedIn(request, reply);
    const detail = 'There is no page at this address. It may have been mistyped, or be that of another version.';
    return session ? show(reply, problemPage({ status: 404, code: 'not_found', detail }), session) : reply;
  });

  /** Who is signed in. Undefined where nobody is: then the answer leads to the page for signing in, and from there back. */
  async function signedIn(request: FastifyRequest, reply: FastifyReply): Promise<Session | undefined> {
    const session = await sessionOf(request);
    if (session) {
      api.trust(request);
      return session;
    }
    const next = request.method === 'GET' ? request.url : '/';
    const login = `${base}/login${next === '/' ? '' : `?next=${encodeURIComponent(next)}`}`;
    // A part of a page is asked for by its script, which would show the form in its place.
    if (request.headers['hx-request'] === undefined) reply.redirect(login, 302);
    else reply.code(401).header('hx-redirect', login).send('');
    return undefined;
  }

  /** `isNamed`: the address of the page names what the call is about. */
  async function ask<T>({ caller }: Session, path: string, isNamed: boolean): Promise<T> {
    const answer = await api.calls.call(caller, { method: 'GET', path });
    if (answer.status === 400 && isNamed)
      throw new MusterError('not_found', 'There can be nothing at this address: what stands in it is no id, or no environment.');
    if (answer.status >= 400) throw problemIn(answer);
    return answer.body as T;
  }
}
