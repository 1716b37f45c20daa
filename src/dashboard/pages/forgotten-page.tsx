import type { ForgottenModel } from '../../api/companies/forget.js';
import type { PageContent } from '../parts/layout.js';
import { erasePath } from '../parts/record-links.js';
import { Link, numberText } from '../parts/shown-values.js';

interface ForgottenProps {
  readonly forgotten: ForgottenModel;
  readonly fields: Readonly<Record<string, string>>;
  readonly back: string;
}

/** Shows whether the record was found and erased: an id that was not found is likely to be misspelt. */
export function forgottenPage(forgotten: ForgottenModel, fields: ForgottenProps['fields'], back: string): PageContent {
  const title = forgotten.found === false ? 'Nothing was found' : 'The person was erased';
  return {
    title,
    body: (
      <div class="card narrow">
        <h1>{title}</h1>
        <Outcome forgotten={forgotten} fields={fields} back={back} />
        <p>
          <Link to={back}>Back to the company</Link>
        </p>
      </div>
    ),
  };
}

function Outcome({ forgotten: { erased, found, similar = [] }, fields }: ForgottenProps) {
  const { environment = '', company_id = '', resource = '', id = '' } = fields;
  if (found !== false)
    return (
      <p role="status">
        Erased from {resource}: {numberText(erased)} {erased === 1 ? 'row' : 'rows'} of the mirror, and everything that feed,
        history and rejected records had of it. The record is kept out of every later sync.
      </p>
    );
  return (
    <>
      <p role="alert">
        Nothing was found in {resource} under <code class="long">{id}</code>, so nothing was erased. The id is kept out from now
        on.
      </p>
      {similar.length > 0 && (
        <p>
          Did you mean{' '}
          {similar.map((each, n) => (
            <>
              {n > 0 && ', '}
              <Link key={each} to={erasePath({ environment, company_id, resource, id: each })}>
                {each}
              </Link>
            </>
          ))}
          ?
        </p>
      )}
      <p class="hint">If the id was misspelt, let it in again on the page that forgets people.</p>
    </>
  );
}
