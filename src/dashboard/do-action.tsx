import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type ReauthorizationLinkModel, reauthorizationLinksCsv } from '../api/companies/connect-links.js';
import type { ForgottenModel } from '../api/companies/forget.js';
import { CSV } from '../api/plumbing/csv.js';
import type { ApiCall, ApiForPages, ApiResponse } from '../api/plumbing/in-process-api.js';
import type { RunModel } from '../api/runs/run-model.js';
import type { QueuedModel, SyncPreviewModel } from '../api/runs/syncs.js';
import { MusterError } from '../core/errors.js';
import { matchingRoute } from './act-on-matching.js';
import { OF_SELECTED } from './pages/companies-page.js';
import { connectLinkPage } from './pages/connect-company-page.js';
import { connectLinksPage } from './pages/connect-links-page.js';
import { forgottenPage } from './pages/forgotten-page.js';
import { holdPage } from './pages/hold-page.js';
import { problemIn, problemPage } from './pages/problem-page.js';
import { askSelectionPage, type Refused, selectionPage } from './pages/selection-page.js';
import { syncedPage, WHY_SKIPPED } from './pages/sync-page.js';
import { tokenPage } from './pages/tokens-page.js';
import { type Action, findAction, labelOf, MOST_UNASKED, ofCompany } from './parts/actions.js';
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
  /** Finds the session of a form; without one, sends the reply that leads to the sign-in page. */
  readonly signIn: (request: FastifyRequest, reply: FastifyReply) => Promise<Session | undefined>;
}

const HIDDEN = { schema: { hide: true } };

/** One call of the API syncs at most this many. */
const MOST_SELECTED = 2_000;

/** The routes of the buttons: they call the API for the person, and show the page again. */
export function actionRoutes(pages: FastifyInstance, { api, publicUrl, base, show, signIn }: ActionDependencies): void {
  // This runs before a handler, so that nothing reads a form of another site.
  const checkForm = async (request: FastifyRequest, reply: FastifyReply) => {
    refuseOtherSites(request, publicUrl);
    const session = await signIn(request, reply);
    if (!session) return reply;
    request.session = session;
    requireOwnForm(request, session.csrf);
    return undefined;
  };
  matchingRoute(pages, { api, checkForm, show });

  pages.post('/act/selection', { ...HIDDEN, preHandler: checkForm }, async (request, reply) => {
    const { session } = request;
    const fields = fieldsOf(request);
    const back = safeRedirectPath(fields.get('back'));
    const name = fields.get('action') ?? '';
    const action = actionNamed(name);
    const title = OF_SELECTED.find(([each]) => each === name)?.[1] ?? labelOf(action, {});
    const chosen = [...new Set(fields.getAll('company'))];
    if (chosen.length > MOST_SELECTED) throw tooMany(chosen.length);
    const targets = chosen.map(targetOf);
    if (chosen.length > MOST_UNASKED && fields.get('confirmed') !== 'yes') {
      const first = await Promise.all(targets.slice(0, MOST_UNASKED).map((target) => named(session, target)));
      const command = { label: title, call: callOfSelected(name, action, targets) };
      return show(reply, askSelectionPage({ title, name, chosen, first, back, command }), session);
    }
    if (name === 'company.sync' && chosen.length > 0) {
      const response = await api.calls.call(session.caller, callOfSelected(name, action, targets));
      if (response.status >= 400) return show(reply, problemPage(problemIn(response), back), session);
      const { queued, skipped } = response.body as QueuedModel;
      const left = skipped?.map(refusedBySync) ?? [];
      return show(reply, selectionPage({ title, count: chosen.length, done: queued, problems: left, back }), session);
    }
    const problems: Refused[] = [];
    for (const target of targets) {
      const response = await api.calls.call(session.caller, action.call(target));
      if (response.status >= 400) problems.push({ ...(await named(session, target)), problem: problemIn(response) });
    }
    return show(reply, selectionPage({ title, count: chosen.length, problems, back }), session);
  });

  pages.post('/act/:name', { ...HIDDEN, preHandler: checkForm }, async (request, reply) => {
    const { session } = request;
    const { name } = request.params as { name: string };
    const { back: path, csrf: _, ...fields } = Object.fromEntries(fieldsOf(request));
    const back = safeRedirectPath(path);
    const { as, confirmed, ...given } = fields;
    const action = actionNamed(name);
    if (confirmed !== 'yes') {
      const question = await questionBefore(name, action, { request, back, given });
      if (typeof question === 'string') return reply.redirect(`${base}${question}`, 303);
      if (question) return show(reply, question, session);
    }
    const call = action.call(given);
    if (action.askedAt) return syncAll(call, { request, reply, back, done: name });
    const response = await api.calls.call(session.caller, call);
    if (response.status >= 400) return show(reply, problemPage(problemIn(response), back), session);
    if (name === 'connect_links.create') {
      const links = response.body as ListResponse<ReauthorizationLinkModel>;
      if (as === 'csv') return sendCsv(reply, 'links.csv', reauthorizationLinksCsv(links.data));
      return show(reply, connectLinksPage({ links, fields: given, back }), session);
    }
    if (name === 'record.forget') return show(reply, forgottenPage(response.body as ForgottenModel, given, back), session);
    const once = shownOnce(response, back);
    if (once) return show(reply, once, session);
    // A retry is a run of its own, unless one is under way.
    const goesTo = name === 'run.retry' ? `/runs/${(response.body as { run: RunModel }).run.id}` : back;
    return reply.redirect(addressAfter(goesTo, name), 303);
  });

  interface Pressed {
    readonly request: FastifyRequest;
    readonly reply: FastifyReply;
    readonly back: string;
  }

  /**
   * The page that asks before the action, or its address, if the action needs one: it deletes rows, or reaches many companies. It never sends the
   * reply: a reply is a thenable, so awaiting one would give undefined, and the action would be done as if it had been confirmed.
   */
  async function questionBefore(
    name: string,
    action: Action,
    { request: { session }, back, given }: Omit<Pressed, 'reply'> & { readonly given: Readonly<Record<string, string>> },
  ): Promise<PageContent | string | undefined> {
    const ask = async <T,>(path: ApiCall['path']): Promise<T> => {
      const response = await api.calls.call(session.caller, { method: 'GET', path });
      if (response.status >= 400) throw problemIn(response);
      return response.body as T;
    };
    if (name === 'hold.approve') {
      const { id = '', reason } = given;
      return holdPage({ ask, params: { id }, query: new URLSearchParams() }, { reason, back });
    }
    const asked = action.askedAt?.(given);
    if (!asked) return undefined;
    const { companies } = await ask<SyncPreviewModel>(asked.preview);
    if (companies <= MOST_UNASKED) return undefined;
    return asked.page;
  }

  /** Requests the syncs, and names the companies that were left out. */
  async function syncAll(call: ApiCall, { request: { session }, reply, back, done }: Pressed & { done: string }) {
    const response = await api.calls.call(session.caller, call);
    if (response.status >= 400) return show(reply, problemPage(problemIn(response), back), session);
    const queued = response.body as QueuedModel;
    if (queued.queued === 0 || queued.skipped) return show(reply, syncedPage(queued, back), session);
    return reply.redirect(addressAfter(back, done), 303);
  }

  function addressAfter(back: string, done: string): string {
    return `${base}${back}${back.includes('?') ? '&' : '?'}done=${encodeURIComponent(done)}`;
  }

  async function named({ caller }: Session, target: Target) {
    const { environment, company_id: companyId } = target;
    const shown = await api.calls.call(caller, { method: 'GET', path: ofCompany(target) });
    const { name } = (shown.body ?? {}) as { name?: string };
    return { environment, companyId, name };
  }
}

type Target = Readonly<Record<'environment' | 'company_id', string>>;

/** The company of a ticked box. */
function targetOf(company: string): Target {
  const [environment = '', company_id = ''] = company.split('/');
  return { environment, company_id };
}

function refusedBySync({ environment, company_id, company_name, code }: NonNullable<QueuedModel['skipped']>[number]): Refused {
  return { environment, companyId: company_id, name: company_name, problem: { status: 409, code, detail: WHY_SKIPPED[code] } };
}

/** Syncs are one call. Every other action is a call for each company; this is the first. */
function callOfSelected(name: string, action: Action, targets: readonly Target[]): ApiCall {
  return name === 'company.sync'
    ? { method: 'POST', path: '/api/syncs', body: { companies: targets } }
    : action.call(targets[0] ?? {});
}

function tooMany(count: number): MusterError {
  return new MusterError(
    'invalid_request',
    `${count} companies were selected, and one form takes ${MOST_SELECTED}. Nothing was done.`,
  );
}

function actionNamed(name: string): Action {
  const action = findAction(name);
  if (action) return action;
  throw new MusterError('not_found', `Unknown action ${JSON.stringify(name)}.`);
}

/** Sends a file for a spreadsheet. */
export function sendCsv(reply: FastifyReply, name: string, csv: string | Readable): FastifyReply {
  return reply
    .type(`${CSV}; charset=utf-8; header=present`)
    .header('content-disposition', `attachment; filename="${name}"`)
    .serializer(String)
    .send(csv);
}

/** The page for a response that is shown only once: a connect link, or a token. */
function shownOnce({ body }: ApiResponse, back: string): PageContent | undefined {
  const { url, expires_at, id, token, name, role } = (body ?? {}) as Record<string, unknown>;
  if (typeof url === 'string' && typeof expires_at === 'string') return connectLinkPage({ url, expires_at }, back);
  if (typeof token === 'string') return tokenPage({ id: String(id), token, name: String(name), role: String(role) }, back);
  return undefined;
}
