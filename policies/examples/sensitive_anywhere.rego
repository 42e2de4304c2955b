# Asks for a StatefulSet or a Node in any environment.
package inquest.approval

factors contains {"score": 75, "reason": "Sensitive resource kind"} if is_sensitive
