import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import type { ApiForPages } from '../api/plumbing/in-process-api.js';
import { problemOf } from '../api/plumbing/problem.js';
import { systemClock } from '../core/clock.js';
import { withoutSlash } from '../core/own-address.js';
import type { Secret } from '../core/secret.js';
import type { Database } from '../db/connection/database.js';
import type { Proxies } from '../http/proxy/proxies.js';
import type { Schedule } from '../runs/schedule.js';
import { serveAssets } from './assets.js';
import { menuCounts } from './menu-counts.js';
import { pageRoutes } from './page-routes.js';
import { problemPage } from './pages/problem-page.js';
import type { ShownSetting } from './pages/settings-page.js';
import { type PageContent, renderPage } from './parts/layout.js';
import type { View } from './parts/view.js';
import { takeOnlyForms } from './sign-in/form-checks.js';
import { oidcRoutes } from './sign-in/oidc-routes.js';
import type { OidcSettings } from './sign-in/oidc-settings.js';
import { sessionKeyOf } from './sign-in/session-cookie.js';
import { type Session, Sessions } from './sign-in/sessions.js';
import { signInRoutes } from './sign-in/sign-in.js';

export interface ControlRoomDependencies {
  readonly db: Database;
  readonly adminToken: Secret;
  readonly publicUrl: URL;
  /** Lets people sign in without a token. Unset: they cannot. */
  readonly oidc?: OidcSettings | undefined;
  /** The proxies to its issuer; unset: none. */
  readonly proxies?: Proxies | undefined;
  readonly schedule: Pick<Schedule, 'timezone'>;
  /** The settings with which the process started. */
  readonly settings: readonly ShownSetting[];
}

/** Scripts and styles come only from this server, and forms go only there. */
const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

const HEADERS = { 'content-security-policy': CONTENT_POLICY, 'cache-control': 'no-store', 'x-robots-tag': 'noindex' };

/** The pages of the control room (docs/control-room.md). They show what the API returns to the person who is signed in. */
export function controlRoom(deps: ControlRoomDependencies): (api: ApiForPages) => FastifyPluginAsync {
  const sessions = new Sessions(deps);
  const readCounts = menuCounts(deps.db, systemClock);
  const base = deps.publicUrl.pathname.replace(/\/+$/, '');

  return (api) => async (pages) => {
    takeOnlyForms(pages);
    pages.addHook('onRequest', async (_request, reply) => void reply.headers(HEADERS));
    const assets = serveAssets(pages);

    function viewOf(request: FastifyRequest, session: Session | undefined): View {
      // The query is null if no route matches the address.
      const { done, undone } = (request.query ?? {}) as { done?: unknown; undone?: unknown };
      return {
        base,
        publicUrl: withoutSlash(deps.publicUrl),
        address: request.url,
        assets,
        now: Date.now(),
        timezone: deps.schedule.timezone,
        ...(session && { viewer: session, counts: request.menuCounts }),
        ...(typeof done === 'string' && { done }),
        ...(typeof undone === 'string' && { undone }),
      };
    }
    const show = (reply: FastifyReply, content: PageContent, session?: Session): FastifyReply =>
      reply
        .headers(HEADERS)
        .code(content.status ?? 200)
        .type('text/html; charset=utf-8')
        .serializer(String)
        .send(renderPage(viewOf(reply.request, session), content));

    pages.setErrorHandler(async (error, request, reply) => {
      const problem = problemOf(error);
      if (problem.status >= 500 && problem.code !== 'stopping')
        request.log.error({ err: error, route: request.routeOptions.url, code: problem.code }, 'A page failed');
      return show(reply, problemPage(problem), request.session);
    });
    signInRoutes(pages, { ...deps, sessions, base, authenticate: api.authenticate, show });
    if (deps.oidc) oidcRoutes(pages, { ...deps, oidc: deps.oidc, sessions, base, show });
    await pages.register(async (own: FastifyInstance) => {
      pageRoutes(own, { ...deps, api, sessionOf, readCounts, base, show });
    });
  };

  async function sessionOf(request: FastifyRequest): Promise<Session | undefined> {
    const key = sessionKeyOf(request);
    return key === undefined ? undefined : sessions.find(key);
  }
}
