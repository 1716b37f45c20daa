import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { CSV } from '../api/plumbing/csv.js';
import type { ApiForPages } from '../api/plumbing/in-process-api.js';
import { MusterError } from '../core/errors.js';
import { actionRoutes, sendCsv } from './do-action.js';
import { listCsvRoutes } from './list-csv.js';
import type { MenuCounts } from './menu-counts.js';
import { auditPage } from './pages/audit-page.js';
import { certificateDownload, certificatePage, keysDownload } from './pages/certificate-page.js';
import { certificatesPage } from './pages/certificates-page.js';
import { companiesPage } from './pages/companies-page.js';
import { companyPage, removePage } from './pages/company-page.js';
import { connectCompanyPage } from './pages/connect-company-page.js';
import { diffPage } from './pages/diff-page.js';
import { forgetPage } from './pages/forget-page.js';
import { holdPage } from './pages/hold-page.js';
import { approveGrantsPage, holdsPage } from './pages/holds-page.js';
import { issuePage } from './pages/issue-page.js';
import { issuesPage } from './pages/issues-page.js';
import { notificationsPage } from './pages/notifications-page.js';
import { overviewPage } from './pages/overview-page.js';
import { problemIn, problemPage } from './pages/problem-page.js';
import { queuePage } from './pages/queue-page.js';
import { quietHoursPage } from './pages/quiet-hours-page.js';
import { recordPage } from './pages/record-page.js';
import { recordsPage } from './pages/records-page.js';
import { rejectedPage } from './pages/rejected-page.js';
import { runPage } from './pages/run-page.js';
import { runsPage } from './pages/runs-page.js';
import { schemaPage } from './pages/schema-page.js';
import { type ShownSetting, settingsPage } from './pages/settings-page.js';
import { syncPage } from './pages/sync-page.js';
import { tokensPage } from './pages/tokens-page.js';
import { unprovedPage } from './pages/unproved-page.js';
import type { PageContent } from './parts/layout.js';
import type { Download, PageRequest } from './parts/page-request.js';
import { withoutNotices } from './parts/view.js';
import { fieldsOf } from './sign-in/form-checks.js';
import { safeRedirectPath } from './sign-in/safe-redirect-path.js';
import type { Session } from './sign-in/sessions.js';

export interface PageRoutesDependencies {
  readonly api: ApiForPages;
  readonly sessionOf: (request: FastifyRequest) => Promise<Session | undefined>;
  readonly readCounts: () => Promise<MenuCounts | undefined>;
  readonly publicUrl: URL;
  readonly base: string;
  readonly settings: readonly ShownSetting[];
  readonly show: (reply: FastifyReply, content: PageContent, session?: Session) => FastifyReply;
}

/** Pages by path, except for the settings page, which does not call the API. */
export const PAGES: Readonly<Record<string, (request: PageRequest) => Promise<PageContent>>> = {
  '/': overviewPage,
  '/companies': companiesPage,
  '/companies/connect': connectCompanyPage,
  '/companies/:environment/:company_id': companyPage,
  '/companies/:environment/:company_id/forget': forgetPage,
  '/companies/:environment/:company_id/quiet-hours': quietHoursPage,
  '/companies/:environment/:company_id/remove': removePage,
  '/records': recordsPage,
  '/records/:environment/:company_id/:resource': recordPage,
  '/records/:environment/:company_id/:resource/*': recordPage,
  '/runs': runsPage,
  '/runs/:id': runPage,
  '/runs/:id/diff': diffPage,
  '/holds': holdsPage,
  '/holds/approve-grants/:environment': approveGrantsPage,
  '/holds/:id': holdPage,
  '/syncs': syncPage,
  '/issues': issuesPage,
  '/issues/:id': issuePage,
  '/unproved': unprovedPage,
  '/certificates': certificatesPage,
  '/certificates/:id': certificatePage,
  '/schema': schemaPage,
  '/notifications': notificationsPage,
  '/audit': auditPage,
  '/queue': queuePage,
  '/rejected': rejectedPage,
  '/tokens': tokensPage,
};

/** Files that pages link to, by path. */
const DOWNLOADS: Readonly<Record<string, (request: PageRequest) => Promise<Download>>> = {
  '/certificates/:id/jws': certificateDownload,
  '/certificates/:id/jwks': keysDownload,
};

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the handler of every page that needs a session. */
    session: Session;
    /** The numbers of the menu, if they are known. */
    menuCounts: MenuCounts | undefined;
  }
}

const HIDDEN = { schema: { hide: true } };

const isForm = ({ method, url }: FastifyRequest) => method === 'POST' && url.startsWith('/act/');

/** The page from which the form was sent, which then says that its action was not done. */
function addressOfForm(request: FastifyRequest): string {
  const fields = fieldsOf(request);
  const { name = fields.get('action') ?? '' } = request.params as { name?: string };
  const back = withoutNotices(safeRedirectPath(fields.get('back')));
  return `${back}${back.includes('?') ? '&' : '?'}undone=${encodeURIComponent(name)}`;
}

/** The pages that need a session. Without one, a person is sent to the sign-in page and then back. */
export function pageRoutes(pages: FastifyInstance, deps: PageRoutesDependencies): void {
  const { api, sessionOf, readCounts, base, show } = deps;
  pages.decorateRequest('session');
  pages.decorateRequest('menuCounts');
  pages.addHook('onRequest', async (request, reply) => {
    // Without a session, the answer to a form needs its fields, which are read later.
    if (isForm(request)) return undefined;
    const session = await signedIn(request, reply);
    if (session) request.session = session;
    return session ? undefined : reply;
  });

  pages.get('/settings', HIDDEN, async ({ session }, reply) => show(reply, settingsPage(deps.settings), session));
  for (const [path, page] of Object.entries(PAGES)) {
    pages.get(path, HIDDEN, async (request, reply) => {
      return show(reply, await page(requestOf(request, path)), request.session);
    });
  }
  for (const [path, download] of Object.entries(DOWNLOADS)) {
    pages.get(path, HIDDEN, async (request, reply) => {
      const { name, type, text } = await download(requestOf(request, path));
      return reply.type(type).header('content-disposition', `attachment; filename="${name}"`).serializer(String).send(text);
    });
  }

  pages.get('/runs/:id/events', HIDDEN, async (request, reply) => {
    const { id } = request.params as { id: string };
    const { status, stream } = await api.calls.follow(request.session.caller, `/api/runs/${encodeURIComponent(id)}/events`);
    const type = status === 200 ? 'text/event-stream' : 'application/problem+json';
    reply.raw.once('close', () => stream.destroy());
    return reply.code(status).headers({ 'content-type': type, 'x-accel-buffering': 'no' }).send(stream);
  });

  pages.get('/holds/:id/rows.csv', HIDDEN, async ({ session, params }, reply) => {
    const path = `/api/holds/${encodeURIComponent((params as { id: string }).id)}/rows`;
    const { status, stream } = await api.calls.follow(session.caller, path, { accept: CSV });
    if (status !== 200) {
      stream.destroy();
      await ask(session, path, true);
    }
    return sendCsv(reply, 'rows.csv', stream);
  });

  listCsvRoutes(pages, { calls: api.calls, ask: (session, path) => ask(session, path, false) });

  actionRoutes(pages, { ...deps, signIn: signedIn });

  api.onUnknown(async (request, reply) => {
    const session = await signedIn(request, reply);
    const detail = 'There is no page at this address. It may be mistyped, or belong to another version.';
    return session ? show(reply, problemPage({ status: 404, code: 'not_found', detail }), session) : reply;
  });

  /** The session of the request. Without one it sends the reply that leads to the sign-in page, and returns undefined. */
  async function signedIn(request: FastifyRequest, reply: FastifyReply): Promise<Session | undefined> {
    const session = await sessionOf(request);
    if (session) {
      api.trust(request);
      request.menuCounts = await readCounts();
      return session;
    }
    const next = isForm(request) ? addressOfForm(request) : request.method === 'GET' ? request.url : '/';
    const login = `${base}/login${next === '/' ? '' : `?next=${encodeURIComponent(next)}`}`;
    // A script that loads a part of a page would show the sign-in form inside the page, so it gets a redirect of its own.
    if (request.headers['hx-request'] === undefined) reply.redirect(login, request.method === 'GET' ? 302 : 303);
    else reply.code(401).header('hx-redirect', login).send('');
    return undefined;
  }

  function requestOf({ session, params, url }: FastifyRequest, path: string): PageRequest {
    return {
      params: params as Record<string, string>,
      query: new URLSearchParams(url.split('?')[1]),
      ask: (call) => ask(session, call, path.includes(':')),
    };
  }

  /** `isNamed`: the address of the page has an id, so that a bad request means a wrong address. */
  async function ask<T>({ caller }: Session, path: string, isNamed: boolean): Promise<T> {
    const response = await api.calls.call(caller, { method: 'GET', path });
    if (response.status === 400 && isNamed) throw new MusterError('not_found', 'This address has an invalid id or environment.');
    if (response.status >= 400) throw problemIn(response);
    return response.body as T;
  }
}
