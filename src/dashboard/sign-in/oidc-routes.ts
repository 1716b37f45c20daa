import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { recordDone } from '../../api/plumbing/audit.js';
import type { Proxies } from '../../http/proxy/proxies.js';
import type { PageContent } from '../parts/layout.js';
import { nameOf, roleFor, roleValues } from './oidc-claims.js';
import { OidcClient, OidcError } from './oidc-client.js';
import { noRolePage, refusedPage, signOutThereYourselfPage } from './oidc-pages.js';
import { type OidcSettings, signInCallback } from './oidc-settings.js';
import { safeRedirectPath } from './safe-redirect-path.js';
import { clearSignInFlow, sessionKeyOf, setSessionKey, setSignInFlow, signInFlowOf } from './session-cookie.js';
import { isSameText, type Sessions } from './sessions.js';
import { beginFlow, flowOf } from './sign-in-flow.js';

export interface OidcRoutesDependencies {
  readonly oidc: OidcSettings;
  /** The proxies to the issuer; unset: none. */
  readonly proxies?: Proxies | undefined;
  readonly sessions: Sessions;
  readonly publicUrl: URL;
  readonly base: string;
  readonly show: (reply: FastifyReply, content: PageContent) => FastifyReply;
}

/** A HEAD request must not spend a code. */
const HIDDEN = { schema: { hide: true }, exposeHeadRoute: false };

/** The pages that begin a session from an issuer's claims about a person. */
export function oidcRoutes(
  pages: FastifyInstance,
  { oidc, proxies, sessions, publicUrl, base, show }: OidcRoutesDependencies,
): void {
  const isSecure = publicUrl.protocol === 'https:';
  const { host } = oidc.issuer;
  const client = new OidcClient(oidc, { callback: signInCallback(publicUrl), now: Date.now, proxies });

  pages.get('/login/oidc', HIDDEN, async (request, reply) => {
    const next = safeRedirectPath((request.query as { next?: unknown }).next);
    // Another site may lead a browser here, which would replace the current session, so the person is asked first.
    if (!['none', 'same-origin'].includes(request.headers['sec-fetch-site'] ?? 'none'))
      return reply.redirect(`${base}/login?next=${encodeURIComponent(next)}`, 303);
    const flow = beginFlow(next, Date.now());
    return orRefusal(request, reply, async () => {
      const url = await client.signInUrl(flow);
      setSignInFlow(reply, flow.text, isSecure);
      return reply.redirect(url.href, 303);
    });
  });

  pages.get('/login/callback', HIDDEN, async (request, reply) => {
    const query = request.url.split('?')[1] ?? '';
    const flow = flowOf(signInFlowOf(request, isSecure) ?? '', Date.now());
    // An attacker who sends a person here with the attacker's code does not have the cookie of the person's browser.
    if (!flow || !isSameText(new URLSearchParams(query).get('state') ?? '', flow.state))
      return show(reply, refusedPage('foreign', { host }));
    clearSignInFlow(reply, isSecure);
    if (flow.isOver) return show(reply, refusedPage('late', { host }));
    return orRefusal(request, reply, async () => {
      const claims = await client.claimsOf(query, flow);
      const name = nameOf(claims, oidc);
      const values = roleValues(claims, oidc);
      const role = roleFor(values, oidc);
      if (!role) {
        request.log.warn({ claim: oidc.roleClaim, values: values.length }, 'A person without a role signed in at the issuer');
        return show(reply, noRolePage({ host, name, claim: oidc.roleClaim, values }));
      }
      const details = { issuer: oidc.issuer.href, subject: claims.sub };
      const key = await sessions.beginForPerson({ name, role, settings: oidc }, (tx) =>
        recordDone(tx, { by: { name, role }, action: 'session.begin', details }),
      );
      // A sign-in ends the previous session of the browser.
      const before = sessionKeyOf(request);
      if (before) await sessions.end(before);
      setSessionKey(reply, key, isSecure);
      return reply.redirect(base + safeRedirectPath(flow.next), 303);
    });
  });

  pages.get('/login/oidc/sign-out', HIDDEN, (request, reply) =>
    orRefusal(request, reply, async () => {
      const url = await client.signOutUrl();
      return url ? reply.redirect(url.href, 303) : show(reply, signOutThereYourselfPage(host));
    }),
  );

  async function orRefusal(
    request: FastifyRequest,
    reply: FastifyReply,
    work: () => Promise<FastifyReply>,
  ): Promise<FastifyReply> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof OidcError)) throw error;
      const { fault, reason } = error;
      if (fault !== 'cancelled')
        request.log.warn({ issuer: oidc.issuer.href, fault, reason }, 'A sign-in by OpenID Connect failed');
      return show(reply, refusedPage(fault, { host, reason }));
    }
  }
}
