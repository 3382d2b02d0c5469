"""All endpoints, those of the catalog and of governance, for the server's routes and its configuration response."""

from bergline.catalog.rest.protocol.endpoints import CATALOG_ENDPOINTS
from bergline.governance.events.protocol import LIST_EVENTS
from bergline.governance.grants.protocol import GRANT_ENDPOINTS
from bergline.governance.lake_branches.protocol import LAKE_BRANCH_ENDPOINTS
from bergline.governance.pull_requests.protocol import PULL_REQUEST_ENDPOINTS
from bergline.governance.reviews.protocol import REVIEW_ENDPOINTS
from bergline.governance.rules.protocol import RULE_ENDPOINTS
from bergline.governance.webhooks.protocol import WEBHOOK_ENDPOINTS

ENDPOINTS = (
    *CATALOG_ENDPOINTS,
    *RULE_ENDPOINTS,
    *REVIEW_ENDPOINTS,
    *LAKE_BRANCH_ENDPOINTS,
    *PULL_REQUEST_ENDPOINTS,
    *GRANT_ENDPOINTS,
    LIST_EVENTS,
    *WEBHOOK_ENDPOINTS,
)
