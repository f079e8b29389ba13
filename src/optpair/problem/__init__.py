"""Problems as users state them: parameters, spaces, outcomes."""
