import type { CompanyModel } from '../../api/companies/company-model.js';
import { ActionForm, AsCommands, useCommands } from '../parts/action-form.js';
import { ofCompany } from '../parts/actions.js';
import { Field } from '../parts/fields.js';
import type { PageContent } from '../parts/layout.js';
import type { PageRequest } from '../parts/page-request.js';
import { Environment, Link } from '../parts/shown-values.js';

/** The form that gives a company quiet hours of its own. */
export async function quietHoursPage({ ask, params }: PageRequest): Promise<PageContent> {
  const company = await ask<CompanyModel>(ofCompany(params));
  return { title: `Quiet hours of ${company.name ?? company.company_id}`, body: <QuietHoursView company={company} /> };
}

function QuietHoursView({ company }: { readonly company: CompanyModel }) {
  const { environment, company_id, name, quiet_hours } = company;
  const fields = { environment, company_id };
  const page = `/companies/${environment}/${company_id}`;
  return (
    <div class="card narrow">
      <h1>Quiet hours of {name ?? company_id}</h1>
      <p class="under">
        <Environment name={environment} /> <span class="id">{company_id}</span>
      </p>
      <p>
        In quiet hours Muster asks nothing of the service by itself for this company. A run that is under way stops, and goes on
        from its checkpoint at their end.
      </p>
      <ActionForm name="company.quiet_hours" fields={fields} back={page}>
        <Field label="Windows in the time zone of the schedule">
          <input
            type="text"
            name="quiet_hours"
            maxLength={1_000}
            value={quiet_hours ?? ''}
            placeholder="07:00-09:00,12:00-13:00"
            autocomplete="off"
          />
        </Field>
        <p class="hint">
          <code>none</code>: no quiet hours. Empty: those of the installation.
        </p>
      </ActionForm>
      <Link to={page}>Leave them as they are</Link>
      <AsCommands commands={useCommands(['company.quiet_hours'], { ...fields, quiet_hours: quiet_hours ?? '' })} />
    </div>
  );
}
