import type { PageContent } from '../parts/layout.js';
import { CompanyLink, Link, numberText } from '../parts/shown-values.js';
import type { ShownProblem } from './problem-page.js';

/** A company for which the action was refused, and why. */
export interface Refused {
  readonly environment: string;
  readonly companyId: string;
  readonly name: string | undefined;
  readonly problem: ShownProblem;
}

interface Selection {
  readonly title: string;
  readonly count: number;
  readonly problems: readonly Refused[];
  readonly back: string;
}

export function selectionPage(selection: Selection): PageContent {
  return { title: selection.title, body: <SelectionResult {...selection} /> };
}

function SelectionResult({ title, count, problems, back }: Selection) {
  const done = count - problems.length;
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
