import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { CompanyModel } from '../api/companies/company-model.js';
import type { ApiForPages } from '../api/plumbing/in-process-api.js';
import { MusterError } from '../core/errors.js';
import { CHOOSING, OF_MATCHING } from './pages/companies-page.js';
import { askMatchingPage } from './pages/matching-page.js';
import { problemIn } from './pages/problem-page.js';
import { type Refused, selectionPage } from './pages/selection-page.js';
import { ACTIONS } from './parts/actions.js';
import type { PageContent } from './parts/layout.js';
import { filtersOf, type ListResponse, listAddress } from './parts/list-page.js';
import { fieldsOf } from './sign-in/form-checks.js';
import { safeRedirectPath } from './sign-in/safe-redirect-path.js';
import type { Session } from './sign-in/sessions.js';

/** More companies than this are asked about before anything is done. */
const MOST_UNASKED = 20;
/** More calls would outlast the patience of a browser and of proxies. */
const MOST = 2_000;
const CALLS_AT_ONCE = 4;
/** Companies that are named in a question. */
const NAMED = 10;

interface MatchingDependencies {
  readonly api: ApiForPages;
  /** Throws for a form that is not of this session, and answers one that has none. */
  readonly checkForm: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
  readonly show: (reply: FastifyReply, content: PageContent, session?: Session) => FastifyReply;
}

type Companies = ListResponse<CompanyModel>;

/**
 * The route of the buttons for all companies that match the filters of the list. The companies are found when the action begins. If they are as many as
 * the person has read, they are acted on; otherwise, and above twenty unless confirmed, a page asks.
 */
export function matchingRoute(pages: FastifyInstance, { api, checkForm, show }: MatchingDependencies): void {
  pages.post('/act/matching', { schema: { hide: true }, preHandler: checkForm }, async (request, reply) => {
    const { session } = request;
    const fields = fieldsOf(request);
    const back = safeRedirectPath(fields.get('back'));
    const [name, title] = OF_MATCHING.find(([each]) => each === fields.get('action')) ?? unknown(fields.get('action'));
    const filters = filtersOf(new URLSearchParams(fields.get('match') ?? ''), CHOOSING);
    const found = await companiesOf(session, filters);
    const count = Number(fields.get('count'));
    if (found.length !== count || (found.length > MOST_UNASKED && fields.get('confirmed') !== 'yes')) {
      const first = found.slice(0, NAMED);
      return show(reply, askMatchingPage({ name, title, filters, total: found.length, before: count, first, back }), session);
    }
    const problems: Refused[] = [];
    const act = async ({ environment, company_id, name: known }: CompanyModel) => {
      const response = await api.calls.call(session.caller, ACTIONS[name].call({ environment, company_id }));
      if (response.status >= 400)
        problems.push({ environment, companyId: company_id, name: known ?? undefined, problem: problemIn(response) });
    };
    const rest = found.values();
    await Promise.all(
      Array.from({ length: CALLS_AT_ONCE }, async () => {
        for (const company of rest) await act(company);
      }),
    );
    return show(reply, selectionPage({ title, count: found.length, problems, back }), session);
  });

  /** All companies that match now. Throws if they are too many for one action. */
  async function companiesOf({ caller }: Session, filters: Readonly<Record<string, string>>): Promise<CompanyModel[]> {
    const found: CompanyModel[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const path = listAddress('/api/companies', { ...filters, limit: 500, ...(cursor && { cursor }) });
      const response = await api.calls.call(caller, { method: 'GET', path });
      if (response.status >= 400) throw problemIn(response);
      const page: Companies = response.body as Companies;
      if ((page.total ?? 0) > MOST)
        throw new MusterError(
          'invalid_request',
          `${page.total} companies match, and one action takes at most ${MOST}: narrow the filters.`,
        );
      found.push(...page.data);
      cursor = page.next_cursor;
    }
    return found;
  }
}

function unknown(name: string | null): never {
  throw new MusterError('not_found', `Unknown action ${JSON.stringify(name ?? '')}.`);
}
