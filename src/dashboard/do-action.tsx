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
import { type Action, findAction, ofCompany } from './parts/actions.js';
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

/** More than a page of the list has. */
const MOST_SELECTED = 500;

/** The routes of the buttons: they call the API for the person, and show the page again. */
export function actionRoutes(pages: FastifyInstance, { api, publicUrl, base, show }: ActionDependencies): void {
  // This runs before a handler, so that nothing reads a form of another site.
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
      const target = { environment, company_id: companyId };
      const response = await api.calls.call(session.caller, action.call(target));
      if (response.status < 400) continue;
      const shown = await api.calls.call(session.caller, { method: 'GET', path: ofCompany(target) });
      const { name: known } = (shown.body ?? {}) as { name?: string };
      problems.push({ environment, companyId, name: known, problem: problemIn(response) });
    }
    return show(reply, selectionPage({ title, count: chosen.length, problems, back }), session);
  });

  pages.post('/act/:name', { ...HIDDEN, preHandler: checkForm }, async (request, reply) => {
    const { session } = request;
    const { name } = request.params as { name: string };
    const { back: path, csrf: _, ...fields } = Object.fromEntries(fieldsOf(request));
    const back = safeRedirectPath(path);
    const { as, ...given } = fields;
    const response = await api.calls.call(session.caller, actionNamed(name).call(given));
    if (response.status >= 400) return show(reply, problemPage(problemIn(response), back), session);
    if (name === 'connect_links.create') {
      const links = response.body as ListResponse<ReauthorizationLinkModel>;
      if (as === 'csv') return sendFile(reply, 'links.csv', reauthorizationLinksCsv(links.data));
      return show(reply, connectLinksPage({ links, fields: given, back }), session);
    }
    const once = shownOnce(response, back);
    if (once) return show(reply, once, session);
    return reply.redirect(`${base}${back}${back.includes('?') ? '&' : '?'}done=${encodeURIComponent(name)}`, 303);
  });
}

function actionNamed(name: string): Action {
  const action = findAction(name);
  if (action) return action;
  throw new MusterError('not_found', `Unknown action ${JSON.stringify(name)}.`);
}

function sendFile(reply: FastifyReply, name: string, csv: string): FastifyReply {
  return reply
    .type(`${CSV}; charset=utf-8; header=present`)
    .header('content-disposition', `attachment; filename="${name}"`)
    .serializer(String)
    .send(csv);
}

/** The page for a response that is shown only once: a connect link, or a token. */
function shownOnce({ body }: ApiResponse, back: string): PageContent | undefined {
  const { url, expires_at, token, name, role } = (body ?? {}) as Record<string, unknown>;
  if (typeof url === 'string' && typeof expires_at === 'string') return connectLinkPage({ url, expires_at }, back);
  if (typeof token === 'string') return tokenPage({ token, name: String(name), role: String(role) }, back);
  return undefined;
}
