import { parseCompanyId } from '../core/company.js';
import { type Answer, html, json, redirect } from './answer.js';
import type { Authority } from './authority.js';
import { authorizeErrorPage, consentPage } from './consent-page.js';
import type { Asked, Route } from './router.js';
import type { World } from './world.js';

const FORM = 'application/x-www-form-urlencoded';
const UNSTORED = { 'cache-control': 'no-store', pragma: 'no-cache' };

/** What stands on {auth_url}: the consent screen and the token endpoint. */
export function authorityRoutes(authority: Authority, world: World, accessTokenSeconds: number): Route[] {
  let answered = 0;

  function authorize({ query }: Asked): Answer {
    const outcome = authority.authorize(query);
    if (outcome.kind === 'error') return html(400, authorizeErrorPage(outcome.problem));
    if (outcome.kind === 'redirect') return redirect(outcome.location);
    return html(200, consentPage(outcome.consentId, world.companies.values(), parseCompanyId(outcome.companyId ?? '')));
  }

  function decide({ body }: Asked): Answer {
    const form = new URLSearchParams(body);
    const companyId = parseCompanyId(form.get('company_id') ?? '') ?? '';
    const allowed = form.get('decision') === 'allow';
    if (allowed && !world.companies.has(companyId)) return html(400, authorizeErrorPage('Choose one of the companies.'));
    const location = authority.decide(form.get('consent') ?? '', allowed ? companyId : undefined);
    return location === undefined
      ? html(400, authorizeErrorPage('This consent was already given or denied.'))
      : redirect(location);
  }

  function token({ contentType, body }: Asked): Answer {
    if (contentType !== FORM) {
      return json(400, { error: 'invalid_request', error_description: `Content-Type must be ${FORM}` }, UNSTORED);
    }
    const form = new URLSearchParams(body);
    const outcome = authority.token(form);
    if ('error' in outcome)
      return json(outcome.status, { error: outcome.error, error_description: outcome.description }, UNSTORED);
    return json(
      200,
      {
        access_token: outcome.accessToken,
        expires_in: accessTokenSeconds,
        // The service writes it both ways, so clients meet both.
        token_type: answered++ % 2 === 0 ? 'bearer' : 'Bearer',
        refresh_token: outcome.refreshToken,
        company_id: outcome.companyId,
      },
      UNSTORED,
    );
  }

  return [
    { method: 'GET', path: '/auth/authorize', handle: authorize },
    { method: 'POST', path: '/auth/authorize', handle: decide },
    { method: 'POST', path: '/auth/token', handle: token },
  ];
}
