import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type ReauthorizationLinkModel, reauthorizationLinksCsv } from '../api/companies/connect-links.js';
import { CSV } from '../api/plumbing/csv.js';
import type { ApiForPages, ApiResponse } from '../api/plumbing/in-process-api.js';
import { MusterError } from '../core/errors.js';
import { OF_SELECTED } from './pages/companies-page.js';
import { connectLinkPage } from './pages/connect-company-page.js';
import { connectLinksPage } from './pages/connect-links-page.js';
import { problemIn, problemPage } from './pages/problem-page.js';
import { type Refused, selectionPage } from './pages/selection-page.js';
import { tokenPage } from './pages/tokens-page.js';
import { ACTIONS, type Action, findAction } from './parts/actions.js';
import type { PageContent } from './parts/layout.js';
import type { ListResponse } from './parts/list-page.js';
import { fieldsOf, refuseOtherSites, requireOwnForm } from './sign-in/form-checks.js';
import { safeRedirectPath } from './sign-in/safe-redirect-path.js';
import type { Session } from './sign-in/sessions.js';

interface ActionDependencies {
  readonly api: ApiForPages;
  readonly publicUrl: URL;
  readonly base: string;
  readonly show: (reply: FastifyReply, content: PageContent, session?: Session) => FastifyReply;
}

const HIDDEN = { schema: { hide: true } };

/** More than a page of a list holds. */
const MOST_SELECTED = 500;

/** Where the buttons of the pages lead: the call of the API is made for the person, and the page is shown again. */
export function actionRoutes(pages: FastifyInstance, { api, publicUrl, base, show }: ActionDependencies): void {
  // Before a handler: what another site sent is not even looked at.
  const checkForm = async (request: FastifyRequest): Promise<void> => {
    refuseOtherSites(request, publicUrl);
    requireOwnForm(request, request.session.csrf);
  };

  pages.post('/act/selection', { ...HIDDEN, preHandler: checkForm }, async (request, reply) => {
    const { session } = request;
    const fields = fieldsOf(request);
    const back = safeRedirectPath(fields.get('back'));
    const name = fields.get('action') ?? '';
    const action = actionNamed(name);
    const title = OF_SELECTED.find(([each]) => each === name)?.[1] ?? action.label;
    const chosen = fields.getAll('company').slice(0, MOST_SELECTED);
    const problems: Refused[] = [];
    for (const company of chosen) {
      const [environment = '', companyId = ''] = company.split('/');
      const answer = await api.calls.call(session.caller, action.call({ environment, company_id: companyId }));
      if (answer.status < 400) continue;
      const path = `/api/companies/${encodeURIComponent(environment)}/${encodeURIComponent(companyId)}`;
      const { name: known } = ((await api.calls.call(session.caller, { method: 'GET', path })).body ?? {}) as { name?: string };
      problems.push({ environment, companyId, name: known, problem: problemIn(answer) });
    }
    return show(reply, selectionPage({ title, count: chosen.length, problems, back }), session);
  });

  pages.post('/act/:name', { ...HIDDEN, preHandler: checkForm }, async (request, reply) => {
    const { session } = request;
    const { name } = request.params as { name: string };
    const { back: given, csrf: _, ...fields } = Object.fromEntries(fieldsOf(request));
    const back = safeRedirectPath(given);
    const { as, ...asked } = fields;
    const answer = await api.calls.call(session.caller, actionNamed(name).call(asked));
    if (answer.status >= 400) return show(reply, problemPage(problemIn(answer), back), session);
    if (name === 'connect_links.create') {
      const links = answer.body as ListResponse<ReauthorizationLinkModel>;
      if (as === 'csv') return sendFile(reply, 'links.csv', reauthorizationLinksCsv(links.data));
      return show(reply, connectLinksPage({ links, fields: asked, back }), session);
    }
    const once = shownOnce(answer, back);
    if (once) return show(reply, once, session);
    return reply.redirect(`${base}${back}${back.includes('?') ? '&' : '?'}done=${encodeURIComponent(name)}`, 303);
  });
}

function actionNamed(name: string): Action {
  const action = findAction(name);
  if (action) return action;
  throw new MusterError('not_found', `There is nothing of this name to do: ${Object.keys(ACTIONS).length} things have one.`);
}

function sendFile(reply: FastifyReply, name: string, csv: string): FastifyReply {
  return reply
    .type(`${CSV}; charset=utf-8; header=present`)
    .header('content-disposition', `attachment; filename="${name}"`)
    .serializer(String)
    .send(csv);
}

/** A page for what an answer tells this once: an address that connects a company, or a token. */
function shownOnce({ body }: ApiResponse, back: string): PageContent | undefined {
  const { url, expires_at, token, name, role } = (body ?? {}) as Record<string, unknown>;
  if (typeof url === 'string' && typeof expires_at === 'string') return connectLinkPage({ url, expires_at }, back);
  if (typeof token === 'string') return tokenPage({ token, name: String(name), role: String(role) }, back);
  return undefined;
}
