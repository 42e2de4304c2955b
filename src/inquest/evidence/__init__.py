"""Cases for readers: evidence and records by an aggregated API, with the rights of whoever asks; nothing is changed.

caller  who asks: the API server says so, and proves by its certificate that it is the API server
rights  what they may read, asked of the API server
desk    one case as that reader may have it
app     routes, and what each end is as an answer
door    the server, for as long as the operator runs

GET /apis/evidence.inquest.dev/v1alpha1/namespaces/NS/cases/NAME               its pieces, without their texts
GET …/cases/NAME?piece=E3                                                      one piece with its text
GET …/cases/NAME/record?from=0                                                 its records, page by page
"""

from inquest.evidence.door import Door

__all__ = ["Door"]
