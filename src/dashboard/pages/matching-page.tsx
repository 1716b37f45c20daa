import type { CompanyModel } from '../../api/companies/company-model.js';
import { FormFields } from '../parts/action-form.js';
import type { PageContent } from '../parts/layout.js';
import { CompanyLink, companyCount, Link, numberText } from '../parts/shown-values.js';
import { useAddress } from '../parts/view.js';

interface Question {
  readonly name: string;
  /** The label of the button. */
  readonly title: string;
  readonly filters: Readonly<Record<string, string>>;
  readonly total: number;
  /** How many matched when the person saw them last. */
  readonly before: number;
  readonly first: readonly CompanyModel[];
  readonly back: string;
}

/** Asks before an action on all companies that match. */
export function askMatchingPage(question: Question): PageContent {
  return { title: question.title, body: <AskMatching {...question} /> };
}

function AskMatching({ name, title, filters, total, before, first, back }: Question) {
  const address = useAddress();
  return (
    <div class="card narrow">
      <h1>{`${title}: ${companyCount(total)}?`}</h1>
      {total !== before && (
        <p class="notice warn" role="alert">
          {`Nothing was done yet: ${companyCount(before)} matched when you selected them, and ${numberText(total)} match now.`}
        </p>
      )}
      {total === 0 ? (
        <p>No company matches any more.</p>
      ) : (
        <>
          <p>It applies to every company that matches the filters:</p>
          <ul class="problems">
            {first.map(({ environment, company_id, name: known }) => (
              <li key={`${environment}/${company_id}`}>
                <CompanyLink environment={environment} companyId={company_id} name={known} />
              </li>
            ))}
            {total > first.length && <li>{`and ${numberText(total - first.length)} more`}</li>}
          </ul>
          <form method="post" action={address('/act/matching')}>
            <FormFields
              fields={{
                match: new URLSearchParams(filters).toString(),
                count: String(total),
                back,
                action: name,
                confirmed: 'yes',
              }}
            />
            <button class="main">{`${title}: ${companyCount(total)}`}</button>
          </form>
        </>
      )}
      <p>
        <Link to={back}>Back to the companies</Link>
      </p>
    </div>
  );
}
