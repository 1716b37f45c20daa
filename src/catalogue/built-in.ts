/** The lists that are mirrored without a catalogue file, in the format of one. A catalogue file replaces all of them. */
export const BUILT_IN_CATALOGUE = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 500 },
    id: ['uid', 'id'],
  },
  departments: {
    method: 'POST',
    path: '/api/v2.0/companies/{company_id}/departments/list',
    pager: { style: 'skip-take', in: 'body', size: 500 },
    id: ['uid', 'id'],
  },
};
