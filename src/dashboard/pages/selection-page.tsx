import { AsCommands, type Command, FormFields } from '../parts/action-form.js';
import type { PageContent } from '../parts/layout.js';
import { CompanyLink, companyCount, Link, numberText } from '../parts/shown-values.js';
import { useAddress } from '../parts/view.js';
import type { ShownProblem } from './problem-page.js';

interface ShownCompany {
  readonly environment: string;
  readonly companyId: string;
  readonly name: string | undefined;
}

/** A company for which the action was refused, and why. */
export interface Refused extends ShownCompany {
  readonly problem: ShownProblem;
}

interface Selection {
  readonly title: string;
  readonly count: number;
  /** Companies for which it was done, if not all problems are named. */
  readonly done?: number;
  readonly problems: readonly Refused[];
  readonly back: string;
}

export function selectionPage(selection: Selection): PageContent {
  return { title: selection.title, body: <SelectionResult {...selection} /> };
}

function SelectionResult({ title, count, problems, back, done = count - problems.length }: Selection) {
  return (
    <div class="card narrow">
      <h1>{title}</h1>
      {count === 0 ? (
        <p role="alert">No company was selected: tick some, and press the button again.</p>
      ) : (
        <p role="status">
          Done for {numberText(done)} of {numberText(count)} selected companies.
        </p>
      )}
      {problems.length > 0 && (
        <ul class="problems">
          {problems.map(({ environment, companyId, name, problem }) => (
            <li key={`${environment}/${companyId}`}>
              <CompanyLink environment={environment} companyId={companyId} name={name} />
              <p>{problem.detail}</p>
            </li>
          ))}
        </ul>
      )}
      <p>
        <Link to={back}>Back to the companies</Link>
      </p>
    </div>
  );
}

interface Question {
  readonly title: string;
  /** The name of the action. */
  readonly name: string;
  /** The values of the ticked boxes. */
  readonly chosen: readonly string[];
  readonly first: readonly ShownCompany[];
  readonly back: string;
  readonly command: Command;
}

/** Asks before an action reaches many ticked companies. */
export function askSelectionPage(question: Question): PageContent {
  return { title: question.title, body: <AskSelection {...question} /> };
}

function AskSelection({ title, name, chosen, first, back, command }: Question) {
  const address = useAddress();
  return (
    <div class="card narrow">
      <h1>
        {title}: {companyCount(chosen.length)}?
      </h1>
      <ul class="ids">
        {first.map((company) => (
          <li key={`${company.environment}/${company.companyId}`}>
            <CompanyLink {...company} />
          </li>
        ))}
        {chosen.length > first.length && <li>and {numberText(chosen.length - first.length)} more</li>}
      </ul>
      <form class="actions" method="post" action={address('/act/selection')}>
        <FormFields fields={{ back, action: name, confirmed: 'yes' }} />
        {chosen.map((company) => (
          <input key={company} type="hidden" name="company" value={company} />
        ))}
        <button class="main">
          {title}: {companyCount(chosen.length)}
        </button>
        <Link to={back}>Do nothing</Link>
      </form>
      <AsCommands commands={[command]} />
    </div>
  );
}
