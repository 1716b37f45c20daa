import type { FastifyInstance } from 'fastify';
import { parseCompanyId } from '../core/company.js';
import { redirect, sendJson, sendPage } from './answer.js';
import type { Authority, Form } from './authority.js';
import { authorizeErrorPage, consentPage } from './html-page.js';
import type { World } from './world.js';

const UNSTORED = { 'cache-control': 'no-store', pragma: 'no-cache' };

/** The routes of {auth_url}: the consent screen and the token endpoint. */
export function authorityRoutes(app: FastifyInstance, authority: Authority, world: World, accessTokenSeconds: number): void {
  let answered = 0;

  app.get<{ Querystring: Form }>('/auth/authorize', ({ query }, reply) => {
    const outcome = authority.authorize(query);
    if (outcome.kind === 'error') return sendPage(reply, 400, authorizeErrorPage(outcome.problem));
    if (outcome.kind === 'redirect') return redirect(reply, outcome.location);
    const selected = parseCompanyId(outcome.companyId ?? '');
    return sendPage(reply, 200, consentPage(outcome.consentId, world.companies.values(), selected));
  });

  app.post<{ Body: Form | undefined }>('/auth/authorize', ({ body: form = {} }, reply) => {
    const companyId = parseCompanyId(form.company_id ?? '') ?? '';
    const allowed = form.decision === 'allow';
    if (allowed && !world.companies.has(companyId)) {
      return sendPage(reply, 400, authorizeErrorPage('Choose one of the companies.'));
    }
    const location = authority.decide(form.consent ?? '', allowed ? companyId : undefined);
    if (location !== undefined) return redirect(reply, location);
    return sendPage(reply, 400, authorizeErrorPage('This consent was already given or denied.'));
  });

  app.post<{ Body: Form | undefined }>('/auth/token', ({ headers, body = {} }, reply) => {
    const isForm = headers['content-type']?.toLowerCase().startsWith('application/x-www-form-urlencoded') === true;
    const outcome = authority.token(isForm ? body : {});
    if ('error' in outcome) {
      return sendJson(reply, outcome.status, { error: outcome.error, error_description: outcome.description }, UNSTORED);
    }
    const tokens = {
      access_token: outcome.accessToken,
      expires_in: accessTokenSeconds,
      // The service uses both spellings, so clients must accept both.
      token_type: answered++ % 2 === 0 ? 'bearer' : 'Bearer',
      refresh_token: outcome.refreshToken,
      company_id: outcome.companyId,
    };
    return sendJson(reply, 200, tokens, UNSTORED);
  });
}
